"""Models that generate: VAE, GANs."""
import chainer
import chainer.functions as F
import chainer.links as L
import numpy as np
from chainer import optimizers

from models.training import batch, model, whole


class Encoder(chainer.Chain):
    def __init__(self, n_in, n_latent, n_h):
        super().__init__()
        with self.init_scope():
            self.linear = L.Linear(n_in, n_h)
            self.mu = L.Linear(n_h, n_latent)
            self.ln_sigma = L.Linear(n_h, n_latent)

    def forward(self, x):
        h = F.tanh(self.linear(x))
        return chainer.distributions.Normal(loc=self.mu(h), log_scale=self.ln_sigma(h))


class Decoder(chainer.Chain):
    def __init__(self, n_in, n_latent, n_h):
        super().__init__()
        with self.init_scope():
            self.linear = L.Linear(n_latent, n_h)
            self.output = L.Linear(n_h, n_in)

    def forward(self, z, inference=False):
        n_batch_axes = 1 if inference else 2
        h = F.tanh(self.linear(z, n_batch_axes=n_batch_axes))
        h = self.output(h, n_batch_axes=n_batch_axes)
        return chainer.distributions.Bernoulli(logit=h)


class Prior(chainer.Link):
    def __init__(self, n_latent):
        super().__init__()
        self.loc = np.zeros(n_latent, np.float32)
        self.scale = np.ones(n_latent, np.float32)
        self.register_persistent("loc")
        self.register_persistent("scale")

    def forward(self):
        return chainer.distributions.Normal(self.loc, scale=self.scale)


class AvgELBOLoss(chainer.Chain):
    """Loss function of the VAE in Chainer's example: the average evidence lower bound."""

    def __init__(self, encoder, decoder, prior, beta=1.0, k=2):
        super().__init__()
        self.beta, self.k = beta, k
        with self.init_scope():
            self.encoder = encoder
            self.decoder = decoder
            self.prior = prior

    def __call__(self, x):
        q_z = self.encoder(x)
        z = q_z.sample(self.k)
        p_x = self.decoder(z)
        p_z = self.prior()
        reconstr = F.mean(F.sum(p_x.log_prob(F.broadcast_to(x[None, :], (self.k,) + x.shape)), axis=-1))
        kl_penalty = F.mean(F.sum(chainer.kl_divergence(q_z, p_z), axis=-1))
        loss = -(reconstr - self.beta * kl_penalty)
        chainer.report({"loss": loss, "kl_penalty": kl_penalty}, self)
        return loss


@model("VAE")
def vae(compile):
    """With `chainer.distributions`, as Chainer's example, whose `reporter.report` runs on the host."""
    net = compile(AvgELBOLoss(Encoder(12, 3, 8), Decoder(12, 3, 8), Prior(3)))
    optimizer = optimizers.Adam().setup(net)
    update = whole(optimizer.update)

    def step(k):
        x = np.random.RandomState(k).randint(0, 2, (batch(k, 5), 12)).astype(np.float32)
        update(net, x)
    return step, [net, optimizer]


class PlainVAE(chainer.Chain):
    """The VAE of older versions of Chainer, with `F.gaussian` and `F.bernoulli_nll`."""

    def __init__(self, n_in, n_latent, n_h):
        super().__init__()
        with self.init_scope():
            self.le1 = L.Linear(n_in, n_h)
            self.le2_mu = L.Linear(n_h, n_latent)
            self.le2_ln_var = L.Linear(n_h, n_latent)
            self.ld1 = L.Linear(n_latent, n_h)
            self.ld2 = L.Linear(n_h, n_in)

    def encode(self, x):
        h1 = F.tanh(self.le1(x))
        return self.le2_mu(h1), self.le2_ln_var(h1)

    def decode(self, z, sigmoid=True):
        h2 = self.ld2(F.tanh(self.ld1(z)))
        return F.sigmoid(h2) if sigmoid else h2

    def get_loss_func(self, beta=1.0, k=1):
        def lf(x):
            mu, ln_var = self.encode(x)
            batchsize = len(mu.array)
            rec_loss = 0
            for _ in range(k):
                z = F.gaussian(mu, ln_var)
                rec_loss += F.bernoulli_nll(x, self.decode(z, sigmoid=False)) / (k * batchsize)
            self.rec_loss = rec_loss
            self.loss = self.rec_loss + beta * F.gaussian_kl_divergence(mu, ln_var) / batchsize
            return self.loss
        return lf


@model("VAE, F.gaussian")
def plain_vae(compile):
    net = PlainVAE(12, 3, 8)
    optimizer = optimizers.Adam().setup(net)
    loss_func, update = compile(net.get_loss_func(k=2)), whole(optimizer.update)

    def step(k):
        x = np.random.RandomState(k).randint(0, 2, (batch(k, 5), 12)).astype(np.float32)
        update(loss_func, x)
    return step, [net, optimizer]


class Generator(chainer.Chain):
    def __init__(self, n_hidden=6, bottom_width=2, ch=8, wscale=0.02):
        super().__init__()
        self.n_hidden, self.ch, self.bottom_width = n_hidden, ch, bottom_width
        with self.init_scope():
            w = chainer.initializers.Normal(wscale)
            self.l0 = L.Linear(self.n_hidden, bottom_width * bottom_width * ch, initialW=w)
            self.dc1 = L.Deconvolution2D(ch, ch // 2, 4, 2, 1, initialW=w)
            self.dc2 = L.Deconvolution2D(ch // 2, 3, 3, 1, 1, initialW=w)
            self.bn0 = L.BatchNormalization(bottom_width * bottom_width * ch)
            self.bn1 = L.BatchNormalization(ch // 2)

    def make_hidden(self, batchsize):
        return np.random.uniform(-1, 1, (batchsize, self.n_hidden, 1, 1)).astype(np.float32)

    def forward(self, z):
        h = F.reshape(F.relu(self.bn0(self.l0(z))), (len(z), self.ch, self.bottom_width, self.bottom_width))
        h = F.relu(self.bn1(self.dc1(h)))
        return F.sigmoid(self.dc2(h))


def add_noise(h, sigma=0.2):
    if chainer.config.train:
        return h + sigma * np.random.randn(*h.shape).astype(h.dtype)
    return h


class Discriminator(chainer.Chain):
    def __init__(self, bottom_width=2, ch=8, wscale=0.02):
        w = chainer.initializers.Normal(wscale)
        super().__init__()
        with self.init_scope():
            self.c0_0 = L.Convolution2D(3, ch // 2, 3, 1, 1, initialW=w)
            self.c0_1 = L.Convolution2D(ch // 2, ch, 4, 2, 1, initialW=w)
            self.bn0_1 = L.BatchNormalization(ch, use_gamma=False)
            self.l4 = L.Linear(bottom_width * bottom_width * ch, 1, initialW=w)

    def forward(self, x):
        device = self.device
        h = add_noise(x)
        h = F.leaky_relu(add_noise(self.c0_0(h)))
        h = F.leaky_relu(add_noise(self.bn0_1(self.c0_1(h))))
        return self.l4(h)


def adam():
    """Biases in front of a batch normalisation have no gradient but rounding: it must not be scaled up."""
    return optimizers.Adam(alpha=0.0002, beta1=0.5, eps=1e-4)


@model("DCGAN")
def dcgan(compile):
    """The updater of Chainer's example: fake images made once, both losses from the same ones."""
    gen, dis = compile(Generator()), compile(Discriminator())
    gen_optimizer, dis_optimizer = adam().setup(gen), adam().setup(dis)

    @compile
    def loss_dis(y_fake, y_real):
        batchsize = len(y_fake)
        return F.sum(F.softplus(-y_real)) / batchsize + F.sum(F.softplus(y_fake)) / batchsize

    @compile
    def loss_gen(y_fake):
        return F.sum(F.softplus(-y_fake)) / len(y_fake)

    @whole
    def update(x_real):
        y_real = dis(x_real)
        x_fake = gen(gen.make_hidden(len(x_real)))
        y_fake = dis(x_fake)
        dis_optimizer.update(loss_dis, y_fake, y_real)
        gen_optimizer.update(loss_gen, y_fake)
        return x_fake, y_fake

    def step(k):
        return update(chainer.Variable(np.random.RandomState(k).rand(batch(k, 4), 3, 4, 4).astype(np.float32)) * 2 - 1)
    return step, [gen, dis, gen_optimizer, dis_optimizer]


@model("DCGAN, each update whole")
def dcgan_whole(compile):
    """Each of the two losses with both networks in one compiled function."""
    gen, dis = Generator(), Discriminator()
    gen_optimizer, dis_optimizer = adam().setup(gen), adam().setup(dis)

    @compile
    def loss_dis(x_real):
        x_fake = gen(gen.make_hidden(len(x_real)))
        x_fake.unchain()
        return F.mean(F.softplus(-dis(x_real))) + F.mean(F.softplus(dis(x_fake)))

    @compile
    def loss_gen(batchsize):
        return F.mean(F.softplus(-dis(gen(gen.make_hidden(batchsize)))))

    @whole
    def update(x_real):
        dis_optimizer.update(loss_dis, x_real)
        gen_optimizer.update(loss_gen, len(x_real))

    def step(k):
        update(np.random.RandomState(k).rand(batch(k, 4), 3, 4, 4).astype(np.float32) * 2 - 1)
    return step, [gen, dis, gen_optimizer, dis_optimizer]


class Critic(chainer.Chain):
    def __init__(self):
        super().__init__()
        with self.init_scope():
            self.conv = L.Convolution2D(1, 4, 3, 1, 1)
            self.l1 = L.Linear(None, 8)
            self.l2 = L.Linear(8, 1)

    def forward(self, x):
        h = F.leaky_relu(self.conv(x))
        h = F.tanh(self.l1(h))
        return self.l2(h)


@model("WGAN with gradient penalty (second order)")
def gradient_penalty(compile):
    gen = chainer.Sequential(L.Linear(3, 16), F.relu, lambda h: F.reshape(h, (-1, 1, 4, 4)))
    critic = Critic()
    gen_optimizer = optimizers.Adam(1e-3, beta1=0, beta2=0.9).setup(gen)
    critic_optimizer = optimizers.Adam(1e-3, beta1=0, beta2=0.9).setup(critic)

    @compile
    def critic_loss(x_real, lam=10):
        batchsize = x_real.shape[0]
        z = np.random.normal(size=(batchsize, 3)).astype(np.float32)
        with chainer.no_backprop_mode():
            x_fake = gen(z)
        eps = np.random.uniform(0, 1, (batchsize, 1, 1, 1)).astype(np.float32)
        x_mid = chainer.Variable(eps * x_real + (1.0 - eps) * x_fake.array)
        grad, = chainer.grad([critic(x_mid)], [x_mid], enable_double_backprop=True)
        norm = F.sqrt(F.batch_l2_norm_squared(grad))
        penalty = lam * F.mean_squared_error(norm, np.ones_like(norm.array))
        loss = F.sum(critic(x_fake)) / batchsize - F.sum(critic(x_real)) / batchsize + penalty
        return loss

    @compile
    def generator_loss(z):
        return F.sum(-critic(gen(z))) / len(z)

    @whole
    def update(x, z):
        critic_optimizer.update(critic_loss, x)
        gen_optimizer.update(generator_loss, z)

    def step(k):
        rng = np.random.RandomState(k)
        critic(np.zeros((1, 1, 4, 4), np.float32))
        update(rng.rand(batch(k, 4), 1, 4, 4).astype(np.float32), rng.normal(size=(batch(k, 4), 3)).astype(np.float32))
    return step, [gen, critic, gen_optimizer, critic_optimizer]


class ResidualBlock(chainer.Chain):
    """Of WaveNet: a dilated convolution that sees the past only, gated, with a skip connection."""

    def __init__(self, filter_size, dilation, residual_channels, dilated_channels, skip_channels):
        super().__init__()
        with self.init_scope():
            self.conv = L.DilatedConvolution2D(residual_channels, dilated_channels, ksize=(filter_size, 1),
                                               pad=(dilation * (filter_size - 1), 0), dilate=(dilation, 1))
            self.res = L.Convolution2D(dilated_channels // 2, residual_channels, 1)
            self.skip = L.Convolution2D(dilated_channels // 2, skip_channels, 1)
            self.condition = L.Convolution2D(3, dilated_channels, 1)

    def forward(self, x, condition):
        length = x.shape[2]
        h = self.conv(x)
        h = h[:, :, :length]
        h += self.condition(condition)
        tanh_z, sig_z = F.split_axis(h, 2, axis=1)
        z = F.tanh(tanh_z) * F.sigmoid(sig_z)
        if x.shape[2] == z.shape[2]:
            residual = self.res(z) + x
        else:
            residual = self.res(z) + x[:, :, -1:]
        return residual, self.skip(z)


class WaveNet(chainer.Chain):
    def __init__(self, n_loop, n_layer, quantize):
        super().__init__()
        with self.init_scope():
            self.embed = L.Convolution2D(quantize, 4, (2, 1), pad=(1, 0))
            self.blocks = chainer.ChainList(*[ResidualBlock(2, 2 ** i, 4, 6, 5) for i in range(n_layer)] * n_loop)
            self.proj1 = L.Convolution2D(5, 5, 1)
            self.proj2 = L.Convolution2D(5, quantize, 1)

    def forward(self, x, t, condition):
        length = x.shape[2]
        h = self.embed(x)[:, :, :length]
        skip_connections = 0
        for block in self.blocks:
            h, skip = block(h, condition)
            skip_connections += skip
        z = self.proj2(F.relu(self.proj1(F.relu(skip_connections))))
        loss = F.softmax_cross_entropy(z[:, :, :-1], t[:, 1:])
        chainer.report({"loss": loss}, self)
        return loss


@model("WaveNet, small")
def wavenet(compile):
    net = compile(WaveNet(1, 3, 8))
    optimizer = optimizers.Adam(1e-3).setup(net)
    update = whole(optimizer.update)

    def step(k):
        rng = np.random.RandomState(k)
        n = batch(k, 2)
        t = rng.randint(0, 8, (n, 12)).astype(np.int32)
        x = np.eye(8, dtype=np.float32)[t].transpose(0, 2, 1)[..., None]
        update(net, x, t[..., None], rng.rand(n, 3, 12, 1).astype(np.float32))
    return step, [net, optimizer]
