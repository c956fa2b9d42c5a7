# Cross build for arm64 with g++-aarch64-linux-gnu. The libraries are unpacked by tools/arm64_sysroot, at the first
# configure and when others are needed; another folder can be given as -DCLRSAMPLER_SYSROOT=.
set(CMAKE_SYSTEM_NAME Linux)
set(CMAKE_SYSTEM_PROCESSOR aarch64)
set(CMAKE_C_COMPILER aarch64-linux-gnu-gcc)
set(CMAKE_CXX_COMPILER aarch64-linux-gnu-g++)
set(CMAKE_LIBRARY_ARCHITECTURE aarch64-linux-gnu)

get_filename_component(clrsampler_root ${CMAKE_CURRENT_LIST_DIR} DIRECTORY)
set(CLRSAMPLER_SYSROOT ${clrsampler_root}/build/arm64-sysroot CACHE PATH "unpacked arm64 packages")
list(APPEND CMAKE_TRY_COMPILE_PLATFORM_VARIABLES CLRSAMPLER_SYSROOT)
execute_process(COMMAND ${clrsampler_root}/tools/arm64_sysroot ${CLRSAMPLER_SYSROOT} RESULT_VARIABLE failed)
if(failed)
  message(FATAL_ERROR "tools/arm64_sysroot failed")
endif()

set(CMAKE_SYSROOT ${CLRSAMPLER_SYSROOT})
set(CMAKE_FIND_ROOT_PATH ${CLRSAMPLER_SYSROOT})
set(CMAKE_FIND_ROOT_PATH_MODE_PROGRAM NEVER)
set(CMAKE_FIND_ROOT_PATH_MODE_LIBRARY ONLY)
set(CMAKE_FIND_ROOT_PATH_MODE_INCLUDE ONLY)
set(CMAKE_FIND_ROOT_PATH_MODE_PACKAGE ONLY)
set(ENV{PKG_CONFIG_LIBDIR} "${CMAKE_SYSROOT}/usr/lib/aarch64-linux-gnu/pkgconfig:${CMAKE_SYSROOT}/usr/share/pkgconfig")
set(ENV{PKG_CONFIG_SYSROOT_DIR} "${CMAKE_SYSROOT}")
