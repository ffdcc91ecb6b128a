"""Two small tasks and ways to train them on several ranks: for torch_training_test.py."""
import contextlib

import torch_1_13

torch_1_13.repair_imports()
import torch  # noqa: E402
import torch.distributed as dist  # noqa: E402
from torch import nn  # noqa: E402
from torch.nn.parallel import DistributedDataParallel  # noqa: E402

EPOCHS, BATCHES, BATCH = 10, 4, 16
STEPS = EPOCHS * BATCHES
STAGES, MICROBATCHES = 4, 4
GLYPHS = """
.##. ..#. .##. ###. #..# #### .### #### .##. .##.
#..# .##. #..# ...# #..# #... #... ...# #..# #..#
#..# ..#. ..#. .##. #### ###. ###. ..#. .##. .###
#..# ..#. .#.. ...# ...# ...# #..# ..#. #..# ...#
.##. .### #### ###. ...# ###. .##. ..#. .##. ###.
"""


def _digits():
    """Batches of pictures of 8 x 8 points, a digit anywhere in noise, and which digit each is."""
    rows = [line.split() for line in GLYPHS.split("\n") if line]
    glyphs = torch.tensor([[[point == "#" for point in row[digit]] for row in rows] for digit in range(10)]).double()
    labels = torch.randint(10, (BATCHES, BATCH))
    pictures = 0.2 * torch.randn(BATCHES, BATCH, 8, 8, dtype=torch.double)
    for place, label in zip(pictures.view(-1, 8, 8), labels.view(-1)):
        down, right = torch.randint(4, (2,)).tolist()
        place[down:down + 5, right:right + 4] += glyphs[label]
    return pictures, labels


def _digits_model():
    return (nn.Sequential(nn.Flatten(), nn.Linear(64, 40), nn.ReLU()), nn.Sequential(nn.Linear(40, 40), nn.ReLU()),
            nn.Sequential(nn.Linear(40, 40), nn.ReLU()), nn.Linear(40, 10))


def _sequences():
    """Batches of tokens, and the token after each: a counter whose step the first two tokens show."""
    begin, step = torch.randint(11, (BATCHES, BATCH, 1)), torch.randint(1, 4, (BATCHES, BATCH, 1))
    tokens = (begin + step * torch.arange(9)) % 11
    return tokens[..., :-1], tokens[..., 1:]


class _Embedding(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.tokens, self.places = nn.Embedding(11, width), nn.Embedding(8, width)

    def forward(self, tokens):
        return self.tokens(tokens) + self.places.weight


class _Layer(nn.Module):
    """Causal attention and a feed-forward layer."""

    def __init__(self, width):
        super().__init__()
        self.attention, self.first = nn.MultiheadAttention(width, 2, batch_first=True), nn.LayerNorm(width)
        self.wide, self.narrow, self.second = nn.Linear(width, 2 * width), nn.Linear(2 * width, width), nn.LayerNorm(width)

    def forward(self, x):
        later = torch.ones(x.size(1), x.size(1), dtype=torch.bool).triu(1)
        x = self.first(x + self.attention(x, x, x, attn_mask=later, need_weights=False)[0])
        return self.second(x + self.narrow(torch.relu(self.wide(x))))


def _transformer():
    width = 16
    return (nn.Sequential(_Embedding(width), _Layer(width)), _Layer(width), _Layer(width),
            nn.Sequential(_Layer(width), nn.Linear(width, 11)))


TASKS = {"digits": (_digits, _digits_model), "transformer": (_sequences, _transformer)}


def _loss(said, wanted):
    return nn.functional.cross_entropy(said.flatten(0, -2), wanted.flatten())


def _adam(parameters):
    return torch.optim.Adam(parameters, lr=0.01)


def _steps(model, optimizer, inputs, wanted):
    """The loss of each step, of all ranks together."""
    rank, size = (dist.get_rank(), dist.get_world_size()) if dist.is_initialized() else (0, 1)
    losses = torch.zeros(STEPS, dtype=torch.double)
    for step in range(STEPS):
        optimizer.zero_grad()
        loss = _loss(model(inputs[step, rank::size]), wanted[step, rank::size])
        loss.backward()
        optimizer.step()
        losses[step] = loss.detach() / size
    if size > 1:
        dist.all_reduce(losses)
    return losses.tolist()


def alone(stages, *data):
    model = nn.Sequential(*stages)
    return _steps(model, _adam(model.parameters()), *data)


def ddp(stages, *data):
    model = DistributedDataParallel(nn.Sequential(*stages), bucket_cap_mb=0.01)
    return _steps(model, _adam(model.parameters()), *data)


def zero(stages, *data):
    from torch.distributed.optim import ZeroRedundancyOptimizer

    model = DistributedDataParallel(nn.Sequential(*stages))
    optimizer = ZeroRedundancyOptimizer(model.parameters(), optimizer_class=torch.optim.Adam, lr=0.01)
    return _steps(model, optimizer, *data)


def fsdp1(stages, *data):
    from torch.distributed.fsdp import FullyShardedDataParallel

    if torch.__version__.startswith("1."):
        torch_1_13.run_fsdp_on_cpu()
    cpu = torch.device("cpu")
    model = FullyShardedDataParallel(nn.Sequential(*(FullyShardedDataParallel(stage, device_id=cpu) for stage in stages)),
                                     device_id=cpu)
    return _steps(model, _adam(model.parameters()), *data)


def fsdp2(stages, *data):
    from torch.distributed.device_mesh import init_device_mesh
    from torch.distributed.fsdp import fully_shard

    mesh, model = init_device_mesh("cpu", (dist.get_world_size(),)), nn.Sequential(*stages)
    for part in (*stages, model):
        fully_shard(part, mesh=mesh)
    return _steps(model, _adam(model.parameters()), *data)


def pipeline(stages, inputs, wanted):
    """Each rank has a share of the stages; activations go forward and gradients back by send and recv, as many at a
    time as there are microbatches."""
    rank, size = dist.get_rank(), dist.get_world_size()
    share = STAGES // size
    model = nn.Sequential(*stages[rank * share:(rank + 1) * share])
    # What the first stage of another rank gets is as what the last stage before it gives.
    with torch.no_grad():
        shape = nn.Sequential(*stages[:rank * share])(inputs[0, :BATCH // MICROBATCHES]).shape if rank > 0 else None
    optimizer, losses = _adam(model.parameters()), torch.zeros(STEPS, dtype=torch.double)
    for step in range(STEPS):
        optimizer.zero_grad()
        received, given = [], []
        sends = []
        for mine, want in zip(inputs[step].chunk(MICROBATCHES), wanted[step].chunk(MICROBATCHES)):
            if rank > 0:
                mine = torch.empty(shape, dtype=torch.double)
                dist.recv(mine, rank - 1)
                mine.requires_grad_()
            out = model(mine)
            if rank < size - 1:
                sends.append(dist.isend(out.detach(), rank + 1))
            else:
                out = _loss(out, want) / MICROBATCHES
                losses[step] += out.detach()
            received.append(mine)
            given.append(out)
        for mine, out in zip(received, given):
            gradient = None
            if rank < size - 1:
                gradient = torch.empty_like(out)
                dist.recv(gradient, rank + 1)
            out.backward(gradient)
            if rank > 0:
                sends.append(dist.isend(mine.grad, rank - 1))
        for work in sends:
            work.wait()
        optimizer.step()
    dist.broadcast(losses, size - 1)
    return losses.tolist()


def train(task, way):
    """The loss of each step."""
    torch.manual_seed(3)
    data, stages = TASKS[task]
    inputs, wanted = (one.repeat(EPOCHS, *[1] * (one.dim() - 1)) for one in data())
    made = [stage.double() for stage in stages()]
    with contextlib.suppress(AttributeError):  # what one process computes must not depend on its cores
        torch.use_deterministic_algorithms(True)
    return way(made, inputs, wanted)
