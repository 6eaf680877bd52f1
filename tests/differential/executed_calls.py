# SPDX-License-Identifier: BSL-1.0
"""The calls of a thread, from RIP and RSP of each instruction that it executed.

A CALL pushes a frame, which lives while RSP is at or below the slot of its return address. The
function of the last frame is that which contains RIP: where it changes without a CALL, the frame
becomes one of the other function, a tail call. RSP in other memory is another stack.

Some instructions have a leaf, but no certain callers: those between the load of RSP and the jump
of a longjmp or of a switch to another stack, those of a CALL to a place in the same function, those
of a function that has dropped its return address, and those on a stack where another thread called
what has not returned. Without RSP it is not known at first which stack a thread has switched to: as
long as another one could have continued like this, its callers are
not certain either. `doubt` counts all these.
"""

import collections
import itertools

ROOT, CALL, EVENT = "root", "call", "event"
NEVER = 1 << 64
MOST_OF_FRAME = 1 << 14  # of a signal, with room for the state of all registers


class Frame:
    __slots__ = ("function", "slot", "kind", "doubt", "back", "is_first", "line")

    def __init__(self, function, slot, kind, doubt=False, back=None):
        self.function, self.slot, self.kind, self.doubt = function, slot, kind, doubt
        self.back = back  # the return address
        self.is_first = False  # of a part of a stack that is a stack of its own
        self.line = None


class Stack:
    """A stack in memory: `low` to `high` is what RSP had since it was entered."""

    def __init__(self, rsp, function, below=None, number=0):
        self.low = self.high = self.left = rsp
        self.frames = [Frame(function, NEVER, ROOT)]
        self.below = below  # of a handler on a stack of its own: the interrupted stack
        self.number = number
        self.owner = None  # the thread that was last on it
        self.suspended = []  # frames that a load of RSP has left: (low, rsp, frames)


# ADD, LEA and SUB of a number and RSP, and the number of bytes of the number.
ADDS_TO_RSP = ((b"\x48\x83\xc4", 1), (b"\x48\x81\xc4", 4), (b"\x48\x8d\x64\x24", 1),
               (b"\x48\x8d\xa4\x24", 4))
SUBTRACTS_FROM_RSP = ((b"\x48\x83\xec", 1), (b"\x48\x81\xec", 4))


def added_to_rsp(code):
    """What an instruction adds to RSP; 0: it is none of these."""
    for sign, forms in ((1, ADDS_TO_RSP), (-1, SUBTRACTS_FROM_RSP)):
        for opcode, size in forms:
            if code.startswith(opcode):
                number = code[len(opcode):len(opcode) + size]
                return sign * int.from_bytes(number, "little", signed=True)
    return 0


def has_executed(executed, at, what, code):
    """A signal handler was entered after an instruction that is no branch. Whether it had executed,
    or is executed later: by where the code continues on the same stack."""
    rip, rsp = executed[at]
    moves = {0, 8, -8, added_to_rsp(code)}
    for next_rip, next_rsp in itertools.islice(executed, at + 1, None):
        if next_rip == rip and next_rsp == rsp:
            return False
        if rip < next_rip <= rip + 15 and (what == "loads" or next_rsp - rsp in moves):
            return True
    return False


class Calls:
    """What a thread executed. `stacks` has the stacks that other threads have left. `has_faults`:
    only faults interrupt an instruction that is no branch."""

    def __init__(self, image, stacks=None, has_faults=True):
        self.has_faults = has_faults
        self.image = image
        self.stacks = [] if stacks is None else stacks
        self.exact = collections.Counter()   # stack of functions: instructions
        self.doubt = collections.Counter()   # leaf: instructions whose callers are not certain
        self.leaves = collections.Counter()  # leaf: instructions
        # Of calls: [depth, function, instructions or None, kind, is tail, instructions before].
        self.lines = []
        self.certain = None  # the lines before the first that is not certain; None: all are
        self.switches = 0
        self.others = []    # stacks that could also be the one that was switched to
        self.pushed = 0     # frames since the switch
        self.count = 0
        self.deepest = 0
        self.entered = []  # stacks that were entered, each from the one before it
        self.deepest_nested = 0  # frames of these

    # --- frames -----------------------------------------------------------------------------------

    def open(self, frame, is_tail=False):
        """`is_tail`: whether a jump replaced the frame before; None: another instruction did."""
        depth = len(self.stack.frames)
        frame.line = [depth, frame.function, None, frame.kind, is_tail, self.count]
        self.lines.append(frame.line)

    def close(self, frame, is_sure=True):
        if is_sure and frame.line is not None:
            frame.line[2] = self.count - frame.line[5]

    def push(self, function, slot, kind, doubt=False, back=None):
        frame = Frame(function, slot, kind, doubt, back)
        self.pushed += 1
        if self.stack.suspended:
            # What is overwritten cannot continue.
            self.stack.suspended = [one for one in self.stack.suspended
                                    if not one[0] <= slot < one[1]]
        self.open(frame)
        self.stack.frames.append(frame)

    def replace(self, function, doubt=False, is_jump=True):
        top = self.stack.frames[-1]
        self.close(top)
        made = Frame(function, top.slot, top.kind, top.doubt or doubt, top.back)
        made.is_first = top.is_first
        self.stack.frames.pop()
        self.open(made, True if is_jump else None)
        self.stack.frames.append(made)

    def pop(self, rsp, is_sure=True):
        """Removes the frames whose slots RSP has left. Returns them. `is_sure`: they end here, not
        where code jumps."""
        frames = self.stack.frames
        gone = []
        while len(frames) > 1 and frames[-1].slot < rsp:
            self.close(frames[-1], is_sure)
            gone.append(frames.pop())
        return gone[::-1]

    def end_of_tree(self):
        if self.certain is None:
            self.certain = [tuple(line) for line in self.lines]

    def key(self):
        """The functions of the stack, and whether all are certain."""
        stack, parts = self.stack, []
        doubt = False
        while stack is not None:
            for frame in reversed(stack.frames):
                parts.append(frame.function)
                doubt = doubt or frame.doubt
                if frame.is_first:
                    break
            stack = None if frame.is_first else stack.below
        if self.others:
            frames = self.stack.frames
            mine = [frame.function for frame in frames[:len(frames) - self.pushed]]
            doubt = doubt or any([frame.function for frame in one] != mine
                                 for one in self.others)
        return tuple(reversed(parts)), doubt

    def narrow(self, is_return, to):
        """A RET or a jump leaves a frame that was there at the switch: which stacks have that?"""
        function = self.image.function(to)
        left = []
        for frames in self.others:
            if is_return and frames[-1].back == to:
                left.append(frames[:-1])
            elif not is_return or frames[-1].back is None:
                at = len(frames)
                while at != 0 and frames[at - 1].function != function:
                    at -= 1
                left.append(frames[:at])
        self.others = [one for one in left if one]

    # --- the thread -------------------------------------------------------------------------------

    def run(self, executed):
        image = self.image
        if not executed:
            return self
        rip, rsp = executed[0]
        self.stack = Stack(rsp, image.function(rip), number=len(self.stacks))
        self.stacks.append(self.stack)
        self.stack.frames[0].line = [0, self.stack.frames[0].function, None, ROOT, False, 0]
        self.lines.append(self.stack.frames[0].line)
        in_doubt = False  # the last frame is not that of RIP, or callers are not certain
        key, key_doubt = self.key()
        last = len(executed) - 1
        for at, (rip, rsp) in enumerate(executed):
            kind = image.kind(rip)
            what = kind.what
            next_rip, next_rsp = executed[at + 1] if at != last else (None, None)
            if what == "repeated" and next_rip == rip:
                continue
            if at == last:
                break
            moved = next_rip - rip
            if what in ("jump", "conditional"):
                is_event = next_rsp != rsp
            elif what == "return":
                is_event = next_rsp != rsp + kind.pops
            elif what == "call":
                is_event = next_rsp != rsp - 8
            elif what == "system":
                is_event = moved != 2
            elif what == "unknown":
                is_event = False
            else:
                is_event = not 0 < moved <= 15
            leaf = image.function(rip)
            if is_event and what in ("other", "loads", "repeated") and (
                    self.has_faults or not has_executed(executed, at, what, image.code(rip, 15))):
                # The instruction has raised a fault.
                self.enter_handler(next_rip, rsp, next_rsp)
                key, key_doubt = self.key()
                continue
            self.count_one(leaf, key, key_doubt or in_doubt)
            function = image.function(next_rip)
            changed = False
            if is_event:
                in_doubt = False
                if what == "system" and image.code(rip - 7, 7) == b"\x48\xc7\xc0\x0f\0\0\0":
                    self.end_handler(next_rsp)
                    if self.stack.frames[-1].function != function:
                        self.replace(function, doubt=True)
                else:
                    self.enter_handler(next_rip, rsp, next_rsp)
                changed = True
            elif what == "call":
                if in_doubt and self.stack.frames[-1].function != leaf:
                    self.replace(leaf, doubt=True)
                in_doubt = False
                is_local = function == leaf and next_rip != function
                if is_local:
                    self.end_of_tree()
                self.push(function, next_rsp, CALL, is_local, rip + kind.length)
                changed = True
            else:
                if what == "loads":
                    changed, in_doubt = self.load(rsp, next_rsp, in_doubt)
                self.track(next_rsp)
                gone = self.pop(next_rsp, what == "return")
                changed = changed or bool(gone)
                if gone and what != "return":
                    in_doubt = True
                    self.end_of_tree()
                is_branch = what in ("jump", "conditional", "return", "unknown")
                if self.others:
                    if what == "return" or is_branch and in_doubt and function != leaf:
                        if self.pushed == 0:
                            self.narrow(what == "return", next_rip)
                            changed = True
                    self.pushed = max(0, self.pushed - len(gone))
                if self.stack.frames[-1].function == function:
                    if is_branch:
                        in_doubt = False
                elif not in_doubt or function != leaf or is_branch:
                    self.replace(function, is_jump=what in ("jump", "conditional"))
                    in_doubt = False
                    changed = True
            self.track(next_rsp)
            if changed:
                key, key_doubt = self.key()
                self.deepest = max(self.deepest, len(key))
                self.nest()
        self.count_one(image.function(rip), key, key_doubt or in_doubt)
        self.stack.left = rsp
        return self

    def nest(self):
        """Code that enters a new stack may return from it to the one before, as __morestack."""
        if self.entered and self.entered[-1] is self.stack:
            nested = sum(len(one.frames) for one in self.entered)
            self.deepest_nested = max(self.deepest_nested, nested)
            return
        while self.stack in self.entered:
            self.entered.pop()
        self.entered.append(self.stack)

    def count_one(self, leaf, key, doubt):
        self.count += 1
        self.leaves[leaf] += 1
        if doubt:
            self.doubt[leaf] += 1
        else:
            self.exact[key] += 1
            assert key[-1] == leaf, (hex(key[-1]), hex(leaf))

    def track(self, rsp):
        self.stack.low = min(self.stack.low, rsp)
        self.stack.high = max(self.stack.high, rsp)

    def enter_handler(self, rip, old, rsp):
        function = self.image.function(rip)
        # The RET of the handler leaves the frame to the code that ends the signal.
        if self.stack.low - MOST_OF_FRAME <= rsp <= self.stack.high:
            self.push(function, rsp + 8, EVENT)
            self.track(rsp)
            return
        self.stack.left = old
        self.end_of_tree()
        self.stack = Stack(rsp, function, below=self.stack, number=len(self.stacks))
        self.stack.high = rsp + MOST_OF_FRAME
        self.stacks.append(self.stack)
        self.switches += 1

    def end_handler(self, rsp):
        while self.stack.below is not None and not self.stack.low <= rsp <= self.stack.high:
            ended = self.stack
            self.stack = ended.below
            # Code may still use what the handler left there.
            ended.below, ended.left = None, ended.low
        self.pop(rsp)

    def load(self, old, rsp, in_doubt):
        """RSP gets another value. Returns whether the frames are others, and in doubt."""
        now = self.stack
        if now.low <= rsp <= now.high:
            return self.load_within(old, rsp, in_doubt)
        for other in reversed(self.stacks):
            if other is not now and other.left <= rsp <= other.high:
                break
        else:
            other = Stack(rsp, now.frames[-1].function, number=len(self.stacks))
            self.stacks.append(other)
        now.left = old
        self.others = [one.frames for one in self.stacks if one is not now and one is not other and
                       one.frames[-1].function == other.frames[-1].function]
        self.pushed = 0
        now.owner = self
        if other.owner not in (None, self):
            for frame in other.frames:  # this thread's trace does not have their calls
                frame.doubt = True
        other.owner = self
        self.stack = other
        self.switches += 1
        self.end_of_tree()
        return True, True

    def load_within(self, old, rsp, in_doubt):
        """Parts of one stack may be stacks of their own, which a load of RSP leaves and enters."""
        now = self.stack
        kept = now.suspended
        if rsp >= old:
            left = [frame for frame in now.frames if frame.slot < rsp]
            if left:
                now.suspended = kept[-99:] + [(old, left[0].slot + 1, left)]
        for i in range(len(kept) - 1, -1, -1):
            low, high, frames = kept[i]
            if low <= rsp < high:
                break
        else:
            return False, in_doubt
        now.suspended = [one for one in now.suspended if one is not kept[i]]
        self.end_of_tree()
        self.switches += 1
        firsts = [at for at, frame in enumerate(now.frames) if frame.is_first]
        if rsp < old and firsts:
            part = now.frames[firsts[-1]:]
            now.suspended.append((old, part[0].slot + 1, part))
            del now.frames[firsts[-1]:]
        self.pop(rsp, False)
        lowest = now.frames[-1].slot
        back = [frame for frame in frames if rsp <= frame.slot < lowest]
        for frame in back:
            self.push(frame.function, frame.slot, frame.kind, frame.doubt, frame.back)
            now.frames[-1].is_first = frame is back[0]
        self.others = [one[2] for one in kept if one is not kept[i]]
        self.pushed = 0
        return True, True
