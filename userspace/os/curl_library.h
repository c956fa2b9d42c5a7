// libcurl, opened at run time: a program that asks nobody runs without it, and starts as fast as if it were not there.
#ifndef CLRSAMPLER_OS_CURL_LIBRARY_H_
#define CLRSAMPLER_OS_CURL_LIBRARY_H_

#include <curl/curl.h>

#include "os/loaded_library.h"

namespace clrsampler {

// Only functions whose ABI has not changed since libcurl 7 came to be.
struct CurlLibrary {
  // Debian's libcurl-gnutls is the one that libdw brings along, by libdebuginfod.
  LoadedLibrary library{"libcurl-gnutls.so.4", "libcurl.so.4"};
  decltype(curl_global_init)* global_init = nullptr;
  decltype(curl_easy_init)* easy_init = nullptr;
  decltype(curl_easy_setopt)* easy_setopt = nullptr;
  decltype(curl_easy_perform)* easy_perform = nullptr;
  decltype(curl_easy_getinfo)* easy_getinfo = nullptr;
  decltype(curl_easy_strerror)* easy_strerror = nullptr;
  decltype(curl_easy_cleanup)* easy_cleanup = nullptr;
  decltype(curl_slist_append)* slist_append = nullptr;
  decltype(curl_slist_free_all)* slist_free_all = nullptr;

  // False: it is not installed, or lacks one of these.
  bool Load() {
    return library.Load("curl_global_init", global_init) && library.Load("curl_easy_init", easy_init) &&
           library.Load("curl_easy_setopt", easy_setopt) && library.Load("curl_easy_perform", easy_perform) &&
           library.Load("curl_easy_getinfo", easy_getinfo) && library.Load("curl_easy_strerror", easy_strerror) &&
           library.Load("curl_easy_cleanup", easy_cleanup) && library.Load("curl_slist_append", slist_append) &&
           library.Load("curl_slist_free_all", slist_free_all);
  }
};

}  // namespace clrsampler

#endif  // CLRSAMPLER_OS_CURL_LIBRARY_H_
