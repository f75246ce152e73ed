// How fast this machine is, for limits that are times or rates: a time that was set on another machine is
// as much longer here as this one is slower.
#pragma once

#include <zlib.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <string>

namespace trainprof {

// What the unit, zlib's level 6 on some megabytes of numbers, takes where the limits were tried: two cores of an EPYC of
// 2023, in a virtual machine. (It took 0.49 s on a day on which simdjson's part of json_import_benchmark took 0.56 s; the
// limits are of days on which that took 0.41.) machine_unit.py has the same unit.
inline constexpr double kUnitSeconds = 0.36;

// The squares of 0 to 599,999, a line each.
inline std::string TextOfUnit() {
  std::string text;
  for (long long i = 0; i < 600'000; ++i) text += std::to_string(i * i) + "\n";
  return text;
}

// How many times as long as there things take here and now: at least 1, since no limit is to get tighter. The fastest
// of five counts. Says so.
inline double Slowness() {
  const std::string text = TextOfUnit();
  std::string packed(compressBound(text.size()), '\0');
  double fastest = 1e9;
  for (int round = 0; round < 5; ++round) {
    const auto begin = std::chrono::steady_clock::now();
    uLongf size = packed.size();
    compress2(reinterpret_cast<Bytef*>(packed.data()), &size,
              reinterpret_cast<const Bytef*>(text.data()), text.size(), 6);
    const auto end = std::chrono::steady_clock::now();
    fastest = std::min(fastest, std::chrono::duration<double>(end - begin).count());
  }
  const double slowness = std::max(1.0, fastest / kUnitSeconds);
  std::printf("unit of this machine: %.3f s; limits that are times are taken %.2f times\n", fastest,
              slowness);
  std::fflush(stdout);
  return slowness;
}

}  // namespace trainprof
