"""Makes notebook.ipynb: imports, a function, and the usual loop in cells of their own."""
import nbformat

IMPORTS = """import torch
from truth import Samples, Stopwatch, make_model
from torch.utils.data import DataLoader"""
FUNCTION = """def slow_loss(model, x, y):
    sum(i * i for i in range(300000))
    return torch.nn.functional.cross_entropy(model(x), y)"""
LOOP = """model = make_model()
optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
watch = Stopwatch()
for x, y in watch.watched(DataLoader(Samples(320), batch_size=8)):
    optimizer.zero_grad()
    with watch.of("forward"):
        loss = slow_loss(model, x, y)
    with watch.of("backward"):
        loss.backward()
    with watch.of("optimizer"):
        optimizer.step()
    watch.step_ends()
watch.save()
print("%.6f" % loss.item())"""
notebook = nbformat.v4.new_notebook()
notebook.cells = [nbformat.v4.new_code_cell(text) for text in (IMPORTS, FUNCTION, LOOP)]
nbformat.write(notebook, "notebook.ipynb")
