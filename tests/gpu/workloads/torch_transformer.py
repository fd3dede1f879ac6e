"""A small causal transformer on random tokens, trained with AdamW."""
import math

import harness
import training

harness.quiet_environment()

VOCABULARY, WIDTH, HEADS, LAYERS, LENGTH, BATCH = 1024, 256, 4, 4, 64, 8


def build(torch):
    nn = torch.nn

    class Block(nn.Module):
        """Attention written out, so that no fused kernel without a deterministic backward is used."""

        def __init__(self):
            super().__init__()
            self.before_attention = nn.LayerNorm(WIDTH)
            self.before_mlp = nn.LayerNorm(WIDTH)
            self.qkv = nn.Linear(WIDTH, 3 * WIDTH)
            self.out = nn.Linear(WIDTH, WIDTH)
            self.mlp = nn.Sequential(nn.Linear(WIDTH, 4 * WIDTH), nn.GELU(),
                                     nn.Linear(4 * WIDTH, WIDTH))

        def attention(self, x, mask):
            b, t, _ = x.shape
            q, k, v = self.qkv(x).view(b, t, 3, HEADS, WIDTH // HEADS).permute(2, 0, 3, 1, 4)
            scores = q @ k.transpose(-2, -1) / math.sqrt(WIDTH // HEADS)
            weights = scores.masked_fill(mask, float("-inf")).softmax(-1)
            return self.out((weights @ v).transpose(1, 2).reshape(b, t, WIDTH))

        def forward(self, x, mask):
            x = x + self.attention(self.before_attention(x), mask)
            return x + self.mlp(self.before_mlp(x))

    class Model(nn.Module):
        def __init__(self):
            super().__init__()
            self.token = nn.Embedding(VOCABULARY, WIDTH)
            self.position = nn.Parameter(torch.randn(LENGTH, WIDTH) * 0.02)
            self.blocks = nn.ModuleList(Block() for _ in range(LAYERS))
            self.norm = nn.LayerNorm(WIDTH)
            self.head = nn.Linear(WIDTH, VOCABULARY)
            self.register_buffer("mask", torch.ones(LENGTH, LENGTH).triu(1).bool())

        def forward(self, tokens):
            x = self.token(tokens) + self.position
            for block in self.blocks:
                x = block(x, self.mask)
            return self.head(self.norm(x))

    return Model()


def main():
    opts = harness.options(default_steps=30)
    torch = harness.torch_deterministic()
    model = build(torch).cuda()
    optimizer = torch.optim.AdamW(model.parameters(), lr=3e-4)
    tokens = [torch.randint(0, VOCABULARY, (BATCH, LENGTH + 1), device="cuda") for _ in range(8)]

    def loss_of(i):
        batch = tokens[i % 8]
        logits = model(batch[:, :-1])
        return torch.nn.functional.cross_entropy(logits.reshape(-1, VOCABULARY),
                                                 batch[:, 1:].reshape(-1))

    training.train("torch_transformer", opts, torch, model, optimizer, loss_of)


if __name__ == "__main__":
    main()
