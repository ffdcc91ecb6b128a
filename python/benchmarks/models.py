"""Models of known sizes that need neither torchvision nor transformers nor weights: the layers and parameter shapes are
those of the originals, the inputs random."""
from __future__ import annotations

from typing import Any, Callable, Dict, Tuple

import torch
from torch import nn


class _Bottleneck(nn.Module):
    def __init__(self, inputs: int, width: int, stride: int) -> None:
        super().__init__()
        outputs = 4 * width
        self.main = nn.Sequential(
            nn.Conv2d(inputs, width, 1, bias=False), nn.BatchNorm2d(width), nn.ReLU(True),
            nn.Conv2d(width, width, 3, stride, 1, bias=False), nn.BatchNorm2d(width), nn.ReLU(True),
            nn.Conv2d(width, outputs, 1, bias=False), nn.BatchNorm2d(outputs))
        self.shortcut = nn.Sequential()
        if stride != 1 or inputs != outputs:
            self.shortcut = nn.Sequential(nn.Conv2d(inputs, outputs, 1, stride, bias=False), nn.BatchNorm2d(outputs))

    def forward(self, x: Any) -> Any:
        return torch.relu(self.main(x) + self.shortcut(x))


def resnet50() -> nn.Module:
    """25,557,032 parameters, as torchvision's."""
    layers = [nn.Conv2d(3, 64, 7, 2, 3, bias=False), nn.BatchNorm2d(64), nn.ReLU(True), nn.MaxPool2d(3, 2, 1)]
    inputs = 64
    for width, blocks, stride in ((64, 3, 1), (128, 4, 2), (256, 6, 2), (512, 3, 2)):
        for block in range(blocks):
            layers.append(_Bottleneck(inputs, width, stride if block == 0 else 1))
            inputs = 4 * width
    return nn.Sequential(*layers, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(inputs, 1000))


class _Bert(nn.Module):
    def __init__(self, vocabulary: int = 30522, width: int = 768, positions: int = 512) -> None:
        super().__init__()
        self.words, self.positions = nn.Embedding(vocabulary, width), nn.Embedding(positions, width)
        self.kinds, self.norm = nn.Embedding(2, width), nn.LayerNorm(width)
        layer = nn.TransformerEncoderLayer(width, 12, 4 * width, dropout=0.0, activation="gelu", batch_first=True)
        self.encoder = nn.TransformerEncoder(layer, 12)
        self.pooler = nn.Linear(width, width)

    def forward(self, tokens: Any) -> Any:
        x = self.words(tokens) + self.positions.weight[:tokens.size(1)] + self.kinds.weight[0]
        return torch.tanh(self.pooler(self.encoder(self.norm(x))[:, 0]))


def bert() -> nn.Module:
    """109,482,240 parameters, as BERT base without a head."""
    return _Bert()


def small() -> nn.Module:
    """For tests of the benchmark."""
    return nn.Sequential(nn.Linear(64, 256), nn.ReLU(), nn.Linear(256, 64))


# name → how it is made, its inputs for a batch
MODELS: Dict[str, Tuple[Callable[[], nn.Module], Callable[[int], Any]]] = {
    "resnet50": (resnet50, lambda batch: torch.randn(batch, 3, 96, 96)),
    "bert": (bert, lambda batch: torch.randint(30522, (batch, 32))),
    "small": (small, lambda batch: torch.randn(batch, 64)),
}
