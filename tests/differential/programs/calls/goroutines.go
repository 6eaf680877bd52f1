// SPDX-License-Identifier: BSL-1.0

// 50 goroutines that pass numbers to each other.
package main

import "os"

//go:noinline
func leaf(a int) int { return a + 1 }

//go:noinline
func work(in <-chan int, depth int) int {
	if depth != 0 {
		return work(in, depth-1) + leaf(depth)
	}
	return leaf(<-in)
}

func member(in <-chan int, out chan<- int, depth int) {
	for i := 0; i < 2; i++ {
		out <- work(in, depth)
	}
}

func main() {
	first := make(chan int)
	last := first
	for i := 0; i < 50; i++ {
		next := make(chan int)
		go member(last, next, i%4)
		last = next
	}
	sum := 0
	for i := 0; i < 2; i++ {
		go func() { first <- i }()
		sum += <-last
	}
	if sum < 100 {
		os.Exit(1)
	}
}
