"""Profiles of several kinds. Prints when CUPTI would have been handed over: without a GPU nothing else tells."""
import torch
from torch.autograd import profiler
from torch.profiler import ProfilerActivity
from trainprof import _recorder

told = []
_recorder.hand_over = told.append


def run(profile):
    told.append("begin")
    with profile:
        told.append("profile")
        torch.ones(2) + 1
    told.append("end")


def with_gpu():
    profile = profiler.profile()
    profile.kineto_activities.add(ProfilerActivity.CUDA)
    return profile


run(profiler.profile())  # of the CPU alone
run(with_gpu())
run(profiler.emit_itt())  # not Kineto's
try:
    profiler._prepare_profiler("no configuration", {ProfilerActivity.CUDA})
except TypeError:
    told.append("refused")
print(told)
