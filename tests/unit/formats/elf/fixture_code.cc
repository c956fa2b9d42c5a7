// Compiled into the images that the ELF tests read.
#include <stdio.h>
#include <stdlib.h>

namespace shop {

class Order {
 public:
  __attribute__((noinline)) int Total(int count) const;
};

int Order::Total(int count) const { return count * 3 + rand(); }

template <typename T>
__attribute__((noinline)) T Twice(T value) {
  return value + value + static_cast<T>(rand());
}

}  // namespace shop

static __attribute__((noinline)) int HiddenHelper(int value) {
  puts("helper");
  return value ^ rand();
}

extern "C" {
// Assembly without .size: a symbol of size 0, followed by a local label and by code that belongs to nobody.
#if defined(__x86_64__)
__asm__(
    ".text\n.globl sizeless\n.type sizeless,@function\nsizeless:\n nop\n nop\n nop\n nop\n ret\n.Llocal_label:\n ret\n"
    ".p2align 4\n.globl after_sizeless\n.type after_sizeless,@function\nafter_sizeless:\n ret\n.size after_sizeless, "
    "1\n"
    ".fill 64,1,0xcc\n");
#else
__asm__(
    ".text\n.globl sizeless\n.type sizeless,@function\nsizeless:\n nop\n nop\n nop\n nop\n ret\n.Llocal_label:\n ret\n"
    ".p2align 4\n.globl after_sizeless\n.type after_sizeless,@function\nafter_sizeless:\n ret\n.size after_sizeless, "
    "4\n"
    ".fill 64,1,0\n");
#endif

int exported_entry(int value) {
  shop::Order order;
  return order.Total(value) + shop::Twice<long>(value) + HiddenHelper(value);
}
int exported_alias(int value) __attribute__((alias("exported_entry")));
int __exported_underscored(int value) __attribute__((alias("exported_entry")));
}

#ifdef WITH_MAIN
int main(int argc, char**) { return exported_entry(argc); }
#endif
