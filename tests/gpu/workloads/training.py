"""A training loop of PyTorch: losses kept on the device, read now and then, digests at the end."""
import harness


def train(name, opts, torch, model, optimizer, loss_of):
    """loss_of(i) computes the loss of step i; the loop is the usual four lines."""
    losses = []
    shown = []
    digest = {"losses": harness.Digest(), "weights": harness.Digest()}

    def step(i):
        optimizer.zero_grad(set_to_none=True)
        loss = loss_of(i)
        loss.backward()
        optimizer.step()
        losses.append(loss.detach())
        if i % 20 == 19:
            shown.append(loss.item())

    def after_block():
        digest["losses"].torch(*losses)
        losses.clear()

    samples, steps = harness.blocks(opts, step, torch.cuda.synchronize, after_block)
    digest["weights"].torch(*model.parameters(), *model.buffers())
    for state in optimizer.state.values():
        digest["weights"].torch(*(v for v in state.values() if torch.is_tensor(v)))
    harness.report(name, samples, steps, digest, torch.cuda.get_device_name(),
                   first_loss=shown[0] if shown else None, last_loss=shown[-1] if shown else None)
