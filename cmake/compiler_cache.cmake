# Objects do not depend on the folder they are built in, so that a second checkout finds those of the first in ccache. Paths below the
# checkout reach the hash as relative ones, and reach debug information as if the checkout were the working folder.
find_program(CCACHE ccache)
if(CCACHE)
  # Not cmake -E env, which takes 50 ms of CPU time to start.
  set(launcher env CCACHE_BASEDIR=${PROJECT_SOURCE_DIR} CCACHE_NOHASHDIR=1 CCACHE_PCH_EXTSUM=1
    CCACHE_SLOPPINESS=pch_defines,time_macros ${CCACHE})
  set(CMAKE_C_COMPILER_LAUNCHER ${launcher})
  set(CMAKE_CXX_COMPILER_LAUNCHER ${launcher})
endif()
add_compile_options(-ffile-prefix-map=${PROJECT_SOURCE_DIR}=.)
