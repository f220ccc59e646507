"""Ways to write a training step: each function here is given a `World`, and gives the step of it."""
import chainer.functions as F


def plain(world):
    model, optimizer = world.model, world.optimizer

    def step(*batch):
        loss = model(*batch)
        model.cleargrads()
        loss.backward()
        optimizer.update()
        return loss
    return step


def cleared_first(world):
    model, optimizer = world.model, world.optimizer

    def step(*batch):
        model.cleargrads()
        loss = model(*batch)
        loss.backward()
        optimizer.update()
        return float(loss.array)
    return step


def zeroed(world):
    model, optimizer = world.model, world.optimizer

    def step(*batch):
        model.zerograds()
        loss = model(*batch)
        loss.backward()
        optimizer.update()
        return loss
    return step


def loss_function(world):
    model, optimizer, log = world.model, world.optimizer, world.log

    def compute(*batch):
        loss = model(*batch)
        log[:] = [loss.array]
        return loss

    def step(*batch):
        optimizer.update(compute, *batch)
    return step


def loss_link(world):
    model, optimizer = world.model, world.optimizer

    def step(*batch):
        optimizer.update(model, *batch)
    return step


def scaled(world):
    model, optimizer = world.model, world.optimizer

    def step(*batch):
        loss = model(*batch)
        model.cleargrads()
        loss.backward(loss_scale=optimizer._loss_scale)
        optimizer.update()
        return loss
    return step


def kept(world):
    model, optimizer = world.model, world.optimizer

    def step(*batch):
        loss = model(*batch)
        model.cleargrads()
        loss.backward(retain_grad=True)
        optimizer.update()
        return loss
    return step


def accumulated(world):
    model, optimizer = world.model, world.optimizer

    def step(x, ids, t, weight):
        model.cleargrads()
        total = 0
        for i in range(2):
            loss = model(x[i::2], ids[i::2], t[i::2], weight) / 2
            loss.backward()
            total += float(loss.array)
        optimizer.update()
        return total
    return step


def two_losses(world):
    model, optimizer = world.model, world.optimizer

    def step(x, ids, t, weight):
        model.cleargrads()
        first = model(x, ids, t, weight)
        second = F.sum(model.l2(model.l1.W.T[:5]) ** 2) * weight
        first.backward()
        second.backward()
        optimizer.update()
        return first, second
    return step


def two_updates(world):
    model, optimizer = world.model, world.optimizer

    def step(*batch):
        for _ in range(2):
            loss = model(*batch)
            model.cleargrads()
            loss.backward()
            optimizer.update()
        return loss
    return step


def reading(world):
    model, optimizer = world.model, world.optimizer

    def step(*batch):
        loss = model(*batch)
        model.cleargrads()
        loss.backward()
        before = [float(abs(p.grad).max()) for p in model.params() if p.grad is not None]
        optimizer.update()
        after = [p.grad for p in model.params()]
        return loss, before, after, optimizer.t, optimizer.target.l1.W.array.sum()
    return step


def reallocated(world):
    model, optimizer = world.model, world.optimizer

    def step(*batch):
        loss = model(*batch)
        model.cleargrads()
        loss.backward()
        optimizer.reallocate_cleared_grads()
        optimizer.update()
        return loss
    return step


def scheduled_inside(world):
    model, optimizer, rate = world.model, world.optimizer, world.rate

    def step(*batch):
        loss = model(*batch)
        model.cleargrads()
        loss.backward()
        setattr(optimizer, rate, getattr(optimizer, rate) * 0.95)
        if optimizer.t % 5 == 4:
            optimizer.new_epoch()
        optimizer.update()
        return loss
    return step


def cleared_after(world):
    model, optimizer = world.model, world.optimizer

    def step(*batch):
        loss = model(*batch)
        loss.backward()
        optimizer.update()
        model.cleargrads()
        return loss
    return step
