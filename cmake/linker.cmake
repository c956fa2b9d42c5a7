# lld links with a third of GNU ld's CPU time (clrsampler itself: 3.2 s and 10.7 s), and a build out of the compiler cache mostly links.
find_program(LLD ld.lld)
if(LLD AND NOT CMAKE_CROSSCOMPILING)  # GCC looks for the linker of another machine under a name of its own
  add_link_options(-fuse-ld=lld)
endif()
