// SPDX-License-Identifier: BSL-1.0

// Position-independent, with shared libraries that the loader binds when they are called first.

#include <iostream>
#include <locale>
#include <map>
#include <sstream>
#include <string>

auto main() -> int {
    std::map<std::string, int> words;
    std::istringstream text{"one two three two three three"};
    for (std::string word; text >> word;) { ++words[word]; }
    for (auto const& [word, count] : words) { std::cout << word << ' ' << count << '\n'; }
}
