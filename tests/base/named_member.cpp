// SPDX-License-Identifier: BSL-1.0
#include <ptspec/base/named_member.hpp>
#include <ptspec/base/ports.hpp>

#include <doctest/doctest.h>

using namespace ptspec;

namespace {

struct gap_name {
    int gap;
    template <class Type>
    static auto find() -> decltype(&Type::gap);
    template <class Type>
    using ignored = typename Type::ignores_gaps;
};
template <class Type>
constexpr bool has_gap = has_member<Type, gap_name>;
template <class Type>
constexpr bool ignores_gap = ignores<Type, gap_name>;

struct nothing {};
struct function {
    void gap(int const&) {}
};
struct overloaded {
    void gap(int) {}
    void gap(char) {}
};
struct generic {
    template <class Type>
    void gap(Type const&) {}
};
template <bool Has>
struct constrained {
    void gap(int)
        requires Has
    {}
};
class secret {
    void gap();
};
struct of_class {
    static void gap() {}
};
struct data {
    int gap;
};
struct inherited : function {};
struct inherited_privately : private function {};
struct virtually : virtual function {};
struct ambiguous : function, data {};
struct abstract_class {
    virtual void gap() = 0;
};
struct final_class final {
    void gap(int&) {}
};
struct final_nothing final {};
union one_of_two {
    int gap;
    int other;
};
struct not_destructible {
    not_destructible() = delete;
    ~not_destructible() = delete;
    int& reference;
};

struct silent {
    using ignores_gaps = silent;
};
struct heir : silent {};
struct says_it_again : silent {
    using ignores_gaps = says_it_again;
};
template <bool Says>
struct sometimes {
    using ignores_gaps = choose_t<Says, sometimes, void>;
};

}  // namespace

TEST_CASE("a member is found by its name, whatever its signature and access") {
    CHECK(has_gap<function>);
    CHECK(has_gap<overloaded>);
    CHECK(has_gap<generic>);
    CHECK(has_gap<constrained<false>>);
    CHECK(has_gap<constrained<true>>);
    CHECK(has_gap<secret>);
    CHECK(has_gap<of_class>);
    CHECK(has_gap<data>);
    CHECK(has_gap<inherited>);
    CHECK(has_gap<inherited_privately>);
    CHECK(has_gap<virtually>);
    CHECK(has_gap<ambiguous>);
    CHECK(has_gap<abstract_class>);
    CHECK(has_gap<final_class>);
    CHECK(has_gap<one_of_two>);
    CHECK(has_gap<function const&>);
}

TEST_CASE("a class without the name has no such member") {
    auto const closure = [count = 1] { return count; };
    CHECK(!has_gap<nothing>);
    CHECK(!has_gap<final_nothing>);
    CHECK(!has_gap<not_destructible>);
    CHECK(!has_gap<int>);
    CHECK(!has_gap<void (*)()>);
    CHECK(!has_gap<decltype(closure)>);
}

TEST_CASE("a class says for itself only that it ignores a member") {
    CHECK(ignores_gap<silent>);
    CHECK(ignores_gap<silent const&>);
    CHECK(!ignores_gap<heir>);
    CHECK(ignores_gap<says_it_again>);
    CHECK(ignores_gap<sometimes<true>>);
    CHECK(!ignores_gap<sometimes<false>>);
    CHECK(!ignores_gap<nothing>);
    CHECK(!ignores_gap<int>);
}
