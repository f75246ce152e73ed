"""Programs of others: frameworks that bring loops of their own, and what they call steps."""

import importlib.util
import sys

import programs
import runs

FOLDER = programs.ROOT / "tests" / "acceptance" / "programs"
STEPS = 40
LIMIT_S = 150
LEAST_COUNTED = STEPS - 12  # ten of warm-up, and one at each end
# Of each script the packages that it needs.
SCRIPTS = {
    "transformers_trainer.py": ("transformers", "accelerate"),
    "lightning_fit.py": ("pytorch_lightning",),
    "torch_compile.py": ("triton",),
    "jax_jit.py": ("jax",),
    "ddp.py": (),
}
TORCHRUN = (sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2")


def check(table, runner):
    """Each ends well; its steps, its kernels and no losses are seen, in every rank."""
    for script, packages in SCRIPTS.items():
        absent = [name for name in packages if importlib.util.find_spec(name) is None]
        if absent:
            table.skip("programs of others", script, f"this Python has no {', '.join(absent)}")
            continue
        start = TORCHRUN if script == "ddp.py" else (sys.executable,)
        program = runs.Command(script, (*start, str(FOLDER / script), str(STEPS)))
        try:
            _check_one(table, program, runner)
        except Exception as error:  # pylint: disable=broad-except  # of one program, not of all
            table.judge("programs of others", script, f"broke: {error}", "", False)


def _check_one(table, program, runner):
    place = runner.next_place()
    outcome = runner.timed(runner.run_command(program, "--full", place=place), {}, LIMIT_S)
    report = runner.report(place)
    ranks = report["ranks"]
    counted = min(rank["steps"]["count"] for rank in ranks)
    kernels = min(rank.get("events", {}).get("kernels", 0) for rank in ranks)
    lost = runs.lost_of(report)
    figure = (f"exit code {outcome.exit_code}, {len(ranks)} ranks, {counted} steps ({ranks[0]['steps']['source']}), "
              f"{kernels} kernels, losses {lost or 'none'}")
    table.judge("programs of others", program.name, figure, f"exit code 0, {LEAST_COUNTED} steps, kernels, no losses",
                outcome.exit_code == 0 and counted >= LEAST_COUNTED and kernels > 0 and not lost)
    table.add("verdict", program.name, report["verdict"])
