"""Ranks that train together on gloo; one's samples take longer. Each keeps its own stopwatch."""
import os
import subprocess
import sys

RANKS = int(sys.argv[2]) if len(sys.argv) > 2 else 2
SLOW = int(sys.argv[3]) if len(sys.argv) > 3 else 1
STEPS = 64  # enough samples of stacks, also beside other programs
SECONDS = 0.001  # to make a sample
SLOW_SECONDS = 0.005


def start_ranks():
    shared = dict(os.environ, WORLD_SIZE=str(RANKS), MASTER_ADDR="127.0.0.1", MASTER_PORT=sys.argv[1])
    ranks = [subprocess.Popen([sys.executable, *sys.argv], env=dict(shared, RANK=str(rank), LOCAL_RANK=str(rank)))
             for rank in range(RANKS)]
    sys.exit(max(rank.wait() for rank in ranks))


def train():
    import torch
    import truth

    torch.set_num_threads(1)
    torch.distributed.init_process_group("gloo")
    rank = torch.distributed.get_rank()
    model = torch.nn.parallel.DistributedDataParallel(truth.make_model())
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    watch = truth.Stopwatch()
    loader = torch.utils.data.DataLoader(truth.Samples(8 * STEPS, SLOW_SECONDS if rank == SLOW else SECONDS), batch_size=8)
    for x, y in watch.watched(loader):
        with watch.of("forward"):
            loss = torch.nn.functional.cross_entropy(model(x), y)
        with watch.of("backward"):
            loss.backward()
        with watch.of("optimizer"):
            optimizer.step()
            optimizer.zero_grad()
        with watch.of("rank_wait"):
            seen = torch.ones(1)
            torch.distributed.all_reduce(seen)
        watch.step_ends()
    watch.save("truth%d.json" % rank)
    torch.distributed.destroy_process_group()


if __name__ == "__main__":
    train() if "RANK" in os.environ else start_ranks()
