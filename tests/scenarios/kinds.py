"""What each kind of habit may be called: the one table to edit when a rule or a class gets another name.

A scenario names the kind of its habit (tests/scenarios/*.cpp, Run::Has). Here stands which rules find it, which
classes of the device's account say so, and which kinds else may be found beside it with good reason: claims that
are not measured, so neither right nor wrong.
"""
import collections

Kind = collections.namedtuple("Kind", "rules classes beside", defaults=((),))

KINDS = {
    "loader": Kind(("input-bound",), ("idle_input_wait",)),
    "read-back": Kind(("host-sync", "sync-call"), ("idle_sync_drain",),
                      ("sync-call", "launch-bound", "host-work")),
    "sync-call": Kind(("sync-call", "host-sync"), ("idle_sync_drain",),
                      ("read-back", "launch-bound", "host-work")),
    "pageable-copy": Kind(("pageable-copy",), ("exposed_copy", "idle_sync_drain"),
                          ("exposed-copy", "blocking-copy")),
    "blocking-copy": Kind(("exposed-copy", "blocking-copy"), ("exposed_copy", "idle_sync_drain"),
                          ("sync-call",)),
    "exposed-copy": Kind(("exposed-copy",), ("exposed_copy",)),
    "cpu-tensor": Kind(("cpu-tensor",), ("idle_launch_bound", "idle_sync_drain", "exposed_copy"),
                       ("launch-bound", "host-work")),
    "allocation": Kind(("allocation",), ("idle_allocation", "idle_sync_drain"),
                       ("sync-call", "launch-bound")),
    "launch-bound": Kind(("launch-bound",), ("idle_launch_bound",), ("host-work",)),
    "host-work": Kind(("host-work",), ("idle_host_work", "idle_python", "idle_io")),
    "checkpoint": Kind(("host-work",), ("idle_host_work", "idle_io"),
                       ("read-back", "sync-call", "exposed-copy", "pageable-copy")),
    "preempted": Kind(("host-preempted", "preempted", "host-work"),
                      ("idle_preempted", "idle_host_work"), ("launch-bound",)),
    "serialised": Kind(("serialised-streams",), ()),  # the device is busy: no class tells
    "host-function": Kind(("host-function", "device-wait"),
                          ("idle_host_function", "idle_dependency")),
    "device-wait": Kind(("device-wait",), ("idle_other_device", "idle_dependency"),
                        ("exposed-copy",)),  # while all devices wait for what one sends, no kernel hides it
    "data-parallel": Kind(("data-parallel",), ("idle_other_device", "exposed_copy"),
                          ("device-wait", "exposed-copy")),
    "communication": Kind(("exposed-communication",), ("exposed_communication",)),
}

# Say that time is lost, not why: they find nothing and are no false alarm where time is lost. Beside no loss they are.
SYMPTOMS = ("low-utilisation",)


def rules_beside(kind):
    return {rule for other in KINDS[kind].beside for rule in KINDS[other].rules}
