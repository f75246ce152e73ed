"""A training loop whose GPU is the virtual one: a kernel a step, whose loss is read at once, and a small tensor that is
made on the CPU. CUDA's calls give the GIL up, as torch's do, and another thread wants it."""
import ctypes
import os
import sys
import threading
import time

import torch

FOLDER = sys.argv[1]  # of its libraries
cuda = ctypes.CDLL(os.path.join(FOLDER, "libcudart.so.13"), mode=ctypes.RTLD_GLOBAL)
machine = ctypes.CDLL(os.path.join(FOLDER, "libcudart_vgpu.so"))


class Spec(ctypes.Structure):
    _fields_ = [("name", ctypes.c_char_p), ("registers", ctypes.c_int), ("shared", ctypes.c_int),
                ("threads", ctypes.c_int), ("local", ctypes.c_int), ("least_ns", ctypes.c_double),
                ("greatest_ns", ctypes.c_double), ("ns_per_thread", ctypes.c_double)]


class Dim3(ctypes.Structure):
    _fields_ = [(axis, ctypes.c_uint) for axis in "xyz"]


machine.vgpuDeclareKernel.restype = ctypes.c_void_p
KERNEL = ctypes.c_void_p(machine.vgpuDeclareKernel(None, ctypes.byref(Spec(name=b"_Z7forwardPfi", least_ns=3e6))))
TO_DEVICE, TO_HOST = 1, 2


class Loss:
    def __init__(self):
        self.device = ctypes.c_void_p()
        cuda.cudaMalloc(ctypes.byref(self.device), ctypes.c_size_t(4096))
        self.host = ctypes.create_string_buffer(4096)

    def item(self):
        cuda.cudaMemcpyAsync(self.host, self.device, ctypes.c_size_t(4), TO_HOST, None)  # the loss is read

    def weigh(self, grüße=b"w" * 64):  # a name that is no ASCII
        for _ in range(4):
            cuda.cudaMemcpyAsync(self.device, grüße, ctypes.c_size_t(64), TO_DEVICE, None)  # made on the CPU


def spin(stop):
    while not stop.is_set():
        sum(range(1000))


weight = torch.ones(8, requires_grad=True)
optimizer = torch.optim.SGD([weight], lr=0.1)
stop = threading.Event()
other = threading.Thread(target=spin, args=(stop,))
other.start()
loss = Loss()
for step in range(30):
    loss.weigh()
    for _ in range(3):
        cuda.cudaLaunchKernel(KERNEL, Dim3(64, 1, 1), Dim3(128, 1, 1), None, ctypes.c_size_t(0), None)
    loss.item()
    weight.sum().backward()
    optimizer.step()
    optimizer.zero_grad()
stop.set()
other.join()
time.sleep(0.6)  # where hooks come late the sampler looks for them a few times a second
cuda.cudaDeviceSynchronize()
