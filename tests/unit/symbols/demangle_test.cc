#include "symbols/demangle.h"

#include <gtest/gtest.h>

#include <string>

namespace clrsampler {
namespace {

struct Case {
  const char* mangled;
  const char* full;
  const char* brief;
};

TEST(DemangleTest, NamesOfCppAndRust) {
  const Case cases[] = {
      {"malloc", "malloc", "malloc"},
      {"memcpy@@GLIBC_2.14", "memcpy", "memcpy"},
      {"_ZNK4shop5Order5TotalEi", "shop::Order::Total(int) const", "shop::Order::Total"},
      {"_ZN4shop5TwiceIlEET_S1_", "long shop::Twice<long>(long)", "shop::Twice<long>"},
      {"_ZL12HiddenHelperi", "HiddenHelper(int)", "HiddenHelper"},
      {"_ZN12_GLOBAL__N_13RunEv", "(anonymous namespace)::Run()", "(anonymous namespace)::Run"},
      {"_ZN1AclEi", "A::operator()(int)", "A::operator()"},
      {"_ZN1AltERKS_", "A::operator<(A const&)", "A::operator<"},
      {"_ZN1AptEv", "A::operator->()", "A::operator->"},
      {"_ZlsIiERSoS0_T_", "std::ostream& operator<< <int>(std::ostream&, int)", "operator<<<int>"},
      {"_ZN1AcvbEv", "A::operator bool()", "A::operator bool"},
      {"_Znwm", "operator new(unsigned long)", "operator new"},
      {"_ZdaPv", "operator delete[](void*)", "operator delete[]"},
      {"_ZN1AC2Ev", "A::A()", "A::A"},
      {"_ZN1AD0Ev", "A::~A()", "A::~A"},
      {"_ZZ4mainENKUlvE_clEv", "main::{lambda()#1}::operator()() const", "main::{lambda()#1}::operator()"},
      {"_ZZN1A1fEiENKUliE_clEi", "A::f(int)::{lambda(int)#1}::operator()(int) const",
       "A::f::{lambda(int)#1}::operator()"},
      {"_Z3runPFviE", "run(void (*)(int))", "run"},
      {"_ZThn8_N1A1fEv", "non-virtual thunk to A::f()", "non-virtual thunk to A::f"},
      {"_ZTW3tls", "TLS wrapper function for tls", "TLS wrapper function for tls"},
      {"_ZN1A1fEv.cold", "A::f() [clone .cold]", "A::f"},
      {"parse.constprop.0", "parse.constprop.0", "parse"},
      {"_Z1fNSt7__cxx1112basic_stringIcSt11char_traitsIcESaIcEEE",
       "f(std::__cxx11::basic_string<char, std::char_traits<char>, std::allocator<char> >)", "f"},
      {"_ZNSt6vectorINSt7__cxx1112basic_stringIcSt11char_traitsIcESaIcEEESaIS5_EE9push_backERKS5_",
       "std::vector<std::__cxx11::basic_string<char, std::char_traits<char>, std::allocator<char> >, "
       "std::allocator<std::__cxx11::basic_string<char, std::char_traits<char>, std::allocator<char> > > "
       ">::push_back(std::__cxx11::basic_string<char, std::char_traits<char>, std::allocator<char> > const&)",
       "std::vector<std::string, std::allocator<std::string>>::push_back"},
      {"_ZN4core3fmt5Write9write_fmt17h0123456789abcdefE", "core::fmt::Write::write_fmt",
       "core::fmt::Write::write_fmt"},
      {"_ZN71_$LT$Test$u20$$u2b$$u20$$u27$static$u20$as$u20$foo..Bar$LT$Test$GT$$GT$3bar17h930b740aa94f1d3aE",
       "<Test + 'static as foo::Bar<Test>>::bar", "<Test + 'static as foo::Bar<Test>>::bar"},
      {"_ZN3std2rt10lang_start28_$u7b$$u7b$closure$u7d$$u7d$17h0123456789abcdefE", "std::rt::lang_start::{{closure}}",
       "std::rt::lang_start::{{closure}}"},
      {"_ZN3std2rt10lang_start17h0123456789abcdefE.llvm.123", "std::rt::lang_start [clone .llvm.123]",
       "std::rt::lang_start"},
      {"_ZN4core3ops34_$LT$$u21$$u20$$u3d$$u20$$u5f$$GT$1f17h0123456789abcdefE", "core::ops::<! = _>::f",
       "core::ops::<! = _>::f"},
      {"_ZN1a7$ue9$_$1f17h0123456789abcdefE", "a::\u00e9_$::f", "a::\u00e9_$::f"},
      // No character, and none that may be printed.
      {"_ZN1a15$u1b$$ud800$$x$1f17h0123456789abcdefE", "a::$u1b$$ud800$$x$::f", "a::$u1b$$ud800$$x$::f"},
  };
  for (const Case& c : cases) {
    EXPECT_EQ(DemangleFull(c.mangled), c.full);
    EXPECT_EQ(DemangleShort(c.mangled), c.brief);
  }
}

TEST(DemangleTest, LongNamesLoseTheirTemplateArgumentsOnly) {
  // ns::Box<ns::Box<...>>::Get(): the name of one level is repeated through nesting, not through substitution.
  std::string type = "i";
  for (int i = 0; i < 40; ++i) type = "N2ns3BoxI" + type + "EE";
  const std::string mangled = "_ZN2ns3BoxI" + type + "E3GetEv";
  EXPECT_GT(DemangleFull(mangled).size(), 300u);
  EXPECT_EQ(DemangleShort(mangled), "ns::Box<...>::Get");
}

TEST(DemangleTest, WhatCannotBeDemangledStaysAsItIs) {
  for (const std::string name : {"", "_", "_Z", "_Z1", "_ZN", "_ZN1", "_Z99999999999f", "_Zxyz", "@", "_R0"}) {
    EXPECT_EQ(DemangleFull(name), name);
    EXPECT_EQ(DemangleShort(name), name);
  }
  const std::string huge = "_Z" + std::string(1 << 20, 'P');
  EXPECT_EQ(DemangleFull(huge), huge);
}

// A name of a hostile file may hold any bytes, and a search for the end of each bracket would be quadratic.
TEST(DemangleTest, BracketsThatDoNotCloseStayAsTheyAre) {
  const std::string brackets(900, '<');
  std::string mangled = "_ZN900" + brackets + "1aI";
  for (int i = 0; i < 34; ++i) mangled += "S_";
  EXPECT_GT(DemangleShort(mangled + "EE").size(), 30'000u);
  EXPECT_EQ(DemangleShort("_Z900" + brackets), brackets);
}

// Each substitution doubles the text: 35 levels would be 10^12 characters.
TEST(DemangleTest, ANameThatUnfoldsIntoTooMuchTextIsLeftMangled) {
  // S_ is std::pair, S0_ is pair<int, int>, and each further one is a pair of two of the one before.
  std::string mangled = "_Z1fSt4pairIiiE";
  const std::string digits = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ";
  std::string last = "S0_";
  for (size_t i = 1; i < digits.size(); ++i) {
    mangled += "S_I" + last + last + "E";
    last = std::string("S") + digits[i] + "_";
    // Short of the limit it is a good name.
    if (i == 3) {
      EXPECT_NE(DemangleFull(mangled), mangled);
    }
  }
  EXPECT_EQ(DemangleFull(mangled), mangled);
  EXPECT_EQ(DemangleShort(mangled), mangled);
}

TEST(DemangleTest, DeepNestingDoesNotOverflowTheStack) {
  for (const std::string unit : {"P", "K", "N", "I", "St4pairI", "PF", "X", "L", "Dp", "T"}) {
    std::string mangled = "_Z1f";
    while (mangled.size() + unit.size() < kMaxMangledBytes) mangled += unit;
    EXPECT_FALSE(DemangleShort(mangled).empty());
    EXPECT_FALSE(DemangleShort(mangled + "i").empty());
  }
}

}  // namespace
}  // namespace clrsampler
