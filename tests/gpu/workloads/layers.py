"""Layers that several networks have."""


def conv_pair(nn, inputs, outputs):
    """Two 3x3 convolutions, each normalised and rectified; the size stays."""
    layers = []
    for channels in (inputs, outputs):
        layers += [nn.Conv2d(channels, outputs, 3, padding=1, bias=False),
                   nn.BatchNorm2d(outputs), nn.ReLU()]
    return nn.Sequential(*layers)
