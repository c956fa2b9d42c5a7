// A shared library that the program can do without: opened when it is needed, by the first of its names that is there.
#ifndef CLRSAMPLER_OS_LOADED_LIBRARY_H_
#define CLRSAMPLER_OS_LOADED_LIBRARY_H_

#include <dlfcn.h>

#include <initializer_list>

namespace clrsampler {

// Stays loaded for the life of the process: TLS libraries leave threads' data and exit handlers behind.
class LoadedLibrary {
 public:
  LoadedLibrary(std::initializer_list<const char*> names) {
    for (const char* name : names) {
      if (handle_ == nullptr) handle_ = dlopen(name, RTLD_NOW | RTLD_LOCAL);
    }
  }

  bool loaded() const { return handle_ != nullptr; }

  // False: the library is older than the function.
  template <typename Function>
  bool Load(const char* name, Function*& function) const {
    function = handle_ == nullptr ? nullptr : reinterpret_cast<Function*>(dlsym(handle_, name));
    return function != nullptr;
  }

 private:
  void* handle_ = nullptr;
};

}  // namespace clrsampler

#endif  // CLRSAMPLER_OS_LOADED_LIBRARY_H_
