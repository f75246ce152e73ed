// How much wider an interval is that rests on few values.
#pragma once

namespace trainprof {

// The 95th percentile of Student's t; degrees >= 1, to 2 % from 2 on. Cornish and Fisher's expansion by
// the normal percentile.
constexpr double StudentsT95(double degrees) {
  constexpr double z = 1.6448536269514722;
  constexpr double z2 = z * z;
  const double d = degrees;
  return z + z * (z2 + 1) / (4 * d) + z * ((5 * z2 + 16) * z2 + 3) / (96 * d * d) +
         z * (((3 * z2 + 19) * z2 + 17) * z2 - 15) / (384 * d * d * d);
}

}  // namespace trainprof
