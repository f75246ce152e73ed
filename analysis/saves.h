// What a loop reads back from its devices to save or log it: copies of a checkpoint, which are no reading of values.
#pragma once

#include <vector>

#include "analysis/host/copy_calls.h"
#include "analysis/model.h"

namespace trainprof {

// The device that stands idle most while the host does something else; nullptr where none trains.
const DeviceAccount* DeviceOfHostWork(const RankModel& model);

// Copies to the host that threads which feed a device asked for within ranges that save or log (IsIoName), as far
// as such a range moves more than kPageableAsyncBytes: a value for a log is read, not saved. In the order of
// device_ops. None where DeviceOfHostWork() is idle by such ranges for less than kLeastShare of the window: then
// nothing is said of saving, and they are copies like others. O(names), and where one of them saves
// O(ranges + device_ops).
std::vector<CopyCall> FindSavedCopies(const RankModel& model);

// Their rows of device_ops, in order.
std::vector<Row> OpsOf(const std::vector<CopyCall>& copies);

}  // namespace trainprof
