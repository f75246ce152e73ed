// Objects that a program holds by handle. The driver keeps them until they are destroyed, so what a
// program forgets is no leak of the process.
#pragma once

#include <map>
#include <memory>
#include <mutex>

namespace vgpu {

template <class T>
class Owned {
 public:
  static T* Keep(std::unique_ptr<T> object) {
    T* handle = object.get();
    const std::lock_guard guard(All().lock);
    All().objects[handle] = std::move(object);
    return handle;
  }

  // False when there is no such object.
  static bool Destroy(const void* handle) {
    const std::lock_guard guard(All().lock);
    return All().objects.erase(handle) > 0;
  }

 private:
  struct Objects {
    std::mutex lock;
    std::map<const void*, std::unique_ptr<T>> objects;
  };
  static Objects& All() {
    static Objects* const objects = new Objects;
    return *objects;
  }
};

}  // namespace vgpu
