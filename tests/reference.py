"""A plain second implementation of the default label correction, written from docs/method.md.

One file, NumPy and SciPy, float64, for small data: all rows are labelled, none is locked, all
classes occur, and no stage reads a sample of the rows. Stages are numbered as on the page.
"""

import numpy as np
from scipy.optimize import minimize
from scipy.spatial.distance import pdist
from scipy.special import log_softmax, logsumexp, softmax
from scipy.stats import beta

same = 1e-5
strengths = 10.0 ** np.arange(-4, 3)
steepness = 4
max_leverage = 0.999
learnt_errors = 1
bandwidth, max_frequencies, rows_per_frequency = 1.5, 256, 8
errors, least_gain = 3, 0.02
sharpness, sharpness_precision = 4, 1
usual_errors, usual_rows = 0.1, 30
max_rounds, tolerance = 8, 0.002
weight_precision, intercept_precision, weight_rounds = 30, 0.001, 2
least_variance = 1e-4
steps = 3
last_sharpness_sd = 0.2
share, hidden, elasticity, unknown = 0.3, 3, (0.1, 0.5), 0.5
sharpening = 0.5
known = (0.6, 0.7)


def correct(X, given):
    """Probabilities of the clean class, transition matrix, and accuracy of the given labels."""
    X, given = np.asarray(X, float), np.asarray(given)
    order, group = canonical_order(X, given)  # 1
    sizes = np.bincount(given)
    classes = np.argsort(-sizes, kind="stable")
    number = np.argsort(classes)
    H, g = X[order], number[given[order]]
    C = len(classes)
    Y = np.eye(C)[g]
    S, rho = choose_scores(H, g, Y)  # 2
    H, S, rho = with_fourier_features(H, S, rho, g, Y)  # 3
    if nothing_learnt(S, g):
        return np.eye(C)[given], np.eye(C), 1.0
    L, T = log_odds_and_transition(S, g)  # 4
    L = refit(H, L, T, g, rho)  # 5
    L = linear_correction(H, L, T, g)  # 6
    Q, T = instance_dependent(L, T, g)  # 7, 8
    Q, T = Q[group][:, number], T[np.ix_(number, number)]
    return Q, T, np.mean(Q[np.arange(len(given)), given])  # 9


# 1. Canonical order and exact duplicates


def canonical_order(X, given):
    """Row numbers of the kept rows in canonical order, and for every row which of them it is."""
    sizes = np.bincount(given)
    rank = np.argsort(np.argsort(-sizes, kind="stable"))
    rows = np.lexsort((X.sum(1), rank[given]))
    spread = X.std(0)
    Z = (X - X.mean(0)) @ np.random.default_rng(0).normal(size=(X.shape[1], 3))
    Z /= Z.std(0)
    kept, group = [], np.zeros(len(X), int)
    for i in rows:
        for k, j in enumerate(kept):
            if given[i] == given[j] and np.all(np.abs(Z[i] - Z[j]) <= same):
                group[i] = k
                break
        else:
            group[i] = len(kept)
            kept.append(i)
    return np.array(kept), group


# 2. Leave-one-out scores


def decompose(H):
    """Centred rows, eigenvalues and eigenvectors of their Gram matrix, with variance only."""
    Hc = H - H.mean(0)
    values, V = np.linalg.eigh(Hc.T @ Hc)
    has_variance = values > 1e-10 * values.max()
    return Hc, values[has_variance], V[:, has_variance]


def leave_one_out(H, Y, rho):
    """Scores of every row from all other rows; its target stays in the mean of the targets."""
    n = len(H)
    Hc, values, V = decompose(H)
    Yc = Y - Y.mean(0)
    A = Hc @ V
    weighted = A / (values + rho * values.mean())
    F = weighted @ (A.T @ Yc)
    lev = (np.sum(weighted * A, axis=1) + 1 / n)[:, None]
    S = Y.mean(0) + (F - (lev - (1 - lev) / (n - 1)) * Yc) / (1 - lev)
    return np.where(lev >= max_leverage, Y.mean(0), S)


def choose_scores(H, g, Y):
    """Leave-one-out scores and the ridge strength that agrees with the given labels."""
    agree = np.array([np.sum(leave_one_out(H, Y, rho).argmax(1) == g) for rho in strengths])
    a, N = agree.max(), len(g)
    w = np.exp(steepness * (agree - a) / np.sqrt(a * (1 - a / N)))
    rho = np.exp(np.sum(w * np.log(strengths)) / np.sum(w))
    return leave_one_out(H, Y, rho), rho


def beyond_chance(S, g):
    """Agreement of scores with given labels, and that of independent labels."""
    C = S.shape[1]
    p = np.bincount(S.argmax(1), minlength=C) / len(g)
    q = np.bincount(g, minlength=C) / len(g)
    return np.mean(S.argmax(1) == g), p @ q


def nothing_learnt(S, g):
    """Whether the scores say no more about the given labels than chance."""
    A, A0 = beyond_chance(S, g)
    return (A - A0) / np.sqrt(A0 * (1 - A0) / len(g)) <= learnt_errors


# 3. Fourier features


def fourier_features(H, frequencies, seed):
    """Cosine and sine of random combinations of the columns."""
    z = np.random.default_rng(seed).normal(size=(H.shape[1], frequencies))
    angles = H @ z * bandwidth / np.median(pdist(H))
    return np.hstack([np.cos(angles), np.sin(angles)])


def clearly_better(S, before, g):
    """Whether scores predict the given labels better, beyond chance of any kind."""
    right, A0 = beyond_chance(before, g)
    gain = beyond_chance(S, g)[0] - right
    standard_error = np.sqrt(right * (1 - right) / len(g))
    return gain >= errors * standard_error and gain >= least_gain * (right - A0)


def with_fourier_features(H, S, rho, g, Y):
    """Embeddings with Fourier features, if the given labels ask for them, and their scores."""
    n = len(H)
    few = min(max_frequencies, n // rows_per_frequency) // 2
    spread = np.where(H.std(0) > 0, H.std(0), 1)
    trials = []
    for columns in (H, H / spread):
        F = fourier_features(columns, few, seed=1)
        F *= np.sqrt(F.shape[1] / np.sum(F.var(0)))
        both = np.hstack([F, 100 * S / S.std()])
        trial, _ = choose_scores(both, g, Y)
        trials.append((np.sum(trial.argmax(1) == g), trial, columns))
    _, trial, columns = max(trials, key=lambda t: t[0])
    if not clearly_better(trial, S, g):
        return H, S, rho
    F = fourier_features(columns, 2 * few, seed=1)
    F *= np.sqrt(np.sum(H.var(0)) / np.sum(F.var(0)))
    wide = np.hstack([H, F])
    wide_S, wide_rho = choose_scores(wide, g, Y)
    if not clearly_better(wide_S, S, g):
        return H, S, rho
    return wide, wide_S, wide_rho


# 4. Log-odds and transition matrix


def likelihood(L, T, g):
    """Log-likelihood of the given labels and its gradient in the log-odds."""
    P = softmax(L, axis=1)
    joint = P * T[:, g].T
    total = joint.sum(1)
    return np.sum(np.log(total)), joint / total[:, None] - P


def posterior(L, T, g):
    """Probability of every clean class, given the label too."""
    joint = softmax(L, axis=1) * T[:, g].T
    return joint / joint.sum(1, keepdims=True)


def class_shares(g, C):
    return np.bincount(g, minlength=C) / len(g)


def log_prior_of_errors(T, g):
    """Half usual noise, half anything."""
    e = class_shares(g, len(T)) @ (1 - np.diag(T))
    a, b = usual_errors * usual_rows, (1 - usual_errors) * usual_rows
    return np.log(beta.pdf(e, a + 1, b + 1) / 2 + 1 / 2)


def with_diagonal_times(T, factor):
    """The diagonal times a factor, rows normalised again."""
    T = T * (1 + np.diag(factor * np.ones(len(T)) - 1))
    return T / T.sum(1, keepdims=True)


def fit_sharpness_and_rate(L, T, g, s, s0):
    """Most probable factor s of L, near s0, and errors of T, together: s, T, log posterior."""

    def loss(z):
        now = with_diagonal_times(T, np.exp(z[1:]))
        value, _ = likelihood(np.exp(z[0]) * L, now, g)
        prior = -sharpness_precision * (z[0] - np.log(s0)) ** 2 / 2 + log_prior_of_errors(now, g)
        return -(value + prior)

    start = np.zeros(1 + (len(T) if len(T) == 2 else 1))
    start[0] = np.log(s)
    bounds = [(-5, 7)] + [(-15, 15)] * (len(start) - 1)
    best = minimize(loss, start, method="L-BFGS-B", bounds=bounds, options={"ftol": 1e-12})
    return np.exp(best.x[0]), with_diagonal_times(T, np.exp(best.x[1:])), -best.fun


def fit_transition(L, T, g, s, s0):
    """Sharpness, transition matrix and log posterior: alternately all of T and its error rate."""
    s, T, value = fit_sharpness_and_rate(L, T, g, s, s0)
    if len(T) == 2:
        return s, T, value
    for _ in range(max_rounds):
        before = T
        T = sparse_transition(expected_counts(posterior(s * L, T, g), g, usual=True))
        s, T, value = fit_sharpness_and_rate(L, T, g, s, s0)
        if np.abs(T - before).max() <= tolerance:
            break
    return s, T, value


def expected_counts(Q, g, usual):
    """How many rows of each clean class carry each given label."""
    C = Q.shape[1]
    N = Q.T @ np.eye(C)[g]
    if usual:
        few = usual_errors * usual_rows * class_shares(g, C)[:, None] / (C - 1)
        N = N + few * (1 - np.eye(C))
    return N


def sparse_transition(N):
    """A transition matrix with as much structure as the counts prove."""
    C = len(N)
    h = np.log(N.sum()) / 2
    n = N.sum(1)
    E = n - np.diag(N)
    pooled = E.sum() / n.sum()
    T = np.zeros((C, C))
    for y in range(C):
        e = E[y] / n[y]
        kl = e * np.log(e / pooled) + (1 - e) * np.log((1 - e) / (1 - pooled))
        rate = e if n[y] * kl > h else pooled
        others = np.arange(C) != y
        t = N[y, others] / E[y]
        proven = np.zeros(C - 1, bool)
        for _ in range(4):
            u = t[~proven].mean() if not proven.all() else 1 / (C - 1)
            u = max(u, 1e-12)
            proven = E[y] * (t * np.log(t / u) - t + u) > h
        shares = np.where(proven, t, u)
        T[y, others] = rate * shares / shares.sum()
        T[y, y] = 1 - rate
    T += 1e-6
    return T / T.sum(1, keepdims=True)


def starts(S, g):
    """Transition matrices to start from."""
    C = S.shape[1]
    found = [right * np.eye(C) + (1 - right) / C for right in (0.95, 0.75, 0.5, 0.25)]
    found.append(anchors(S, g))
    if C == 2:
        for e in (0.1, 0.3):
            found.append(np.array([[1 - e, e], [0.001, 0.999]]))
            found.append(np.array([[0.999, 0.001], [e, 1 - e]]))
    return found


def anchors(S, g):
    """Given labels of the clearest rows of each predicted class."""
    C = S.shape[1]
    top = np.sort(S, axis=1)
    margin = top[:, -1] - top[:, -2]
    N = np.zeros((C, C))
    for y in range(C):
        rows = np.flatnonzero(S.argmax(1) == y)
        best = rows[np.argsort(-margin[rows], kind="stable")][: int(np.ceil(len(rows) / 5))]
        for i in best:
            N[y, g[i]] += 1
    rate = (np.trace(N) + 1) / (N.sum() + 2)
    N += 20 * (rate * np.eye(C) + (1 - rate) / (C - 1) * (1 - np.eye(C)))
    return N / N.sum(1, keepdims=True)


def whiten(S):
    """Whitened scores, and the matrix and mean that give the scores back."""
    mean = S.mean(0)
    values, V = np.linalg.eigh(np.cov(S.T, bias=True))
    keep = values > least_variance * values.max()
    root = np.sqrt(values[keep])
    return (S - mean) @ V[:, keep] / root, (V[:, keep] * root).T, mean


def linear_map(S, s, T, g, L0):
    """Log-odds linear in the whitened scores, near L0, by the likelihood of the given labels."""
    U, _, _ = whiten(S)
    C, k = S.shape[1], U.shape[1]
    W0 = U.T @ (L0 - L0.mean(0)) / len(U)
    b0 = L0.mean(0)

    def loss(z):
        b, W = z[:C], z[C:].reshape(k, C)
        value, grad = likelihood(b + U @ W, T, g)
        value -= weight_precision * np.sum((W - W0) ** 2) / 2
        value -= intercept_precision * np.sum((b - b0) ** 2) / 2
        db = grad.sum(0) - intercept_precision * (b - b0)
        dW = U.T @ grad - weight_precision * (W - W0)
        return -value, -np.concatenate([db, dW.ravel()])

    z = np.concatenate([b0, W0.ravel()])
    z = minimize(loss, z, jac=True, method="L-BFGS-B", options={"maxiter": 500}).x
    return z[:C] + U @ z[C:].reshape(k, C)


def log_odds_and_transition(S, g):
    """Log-odds and transition matrix that are most probable together."""
    C = S.shape[1]
    S = S / S.std()
    ends = [fit_transition(S, T, g, sharpness, sharpness) for T in starts(S, g)]
    s, T, _ = max(ends, key=lambda end: end[2])
    L = s * S
    if len(S) < 2 * C * C:
        return L, T
    for _ in range(weight_rounds):
        L = linear_map(S, s, T, g, L)
        s, T, _ = fit_transition(L, T, g, 1.0, sharpness / L.std())
        L = s * L
    return L, T


# 5. Refit


def refit(H, L, T, g, rho):
    """The log-odds mixed with those of scores that are fitted to the posterior."""
    C = L.shape[1]
    S = leave_one_out(H, posterior(L, T, g), rho)
    S = S / S.std()

    def loss(z):
        value, _ = likelihood(np.exp(z[0]) * S, T, g)
        return -value + sharpness_precision * (z[0] - np.log(sharpness)) ** 2 / 2

    s = np.exp(minimize(loss, [np.log(sharpness)], method="L-BFGS-B").x[0])
    L2 = s * S
    if len(S) >= 2 * C * C:
        L2 = linear_map(S, s, T, g, L2)

    def mixed(z):
        value, grad = likelihood(z[0] * L + z[1] * L2, T, g)
        return -value, -np.array([np.sum(grad * L), np.sum(grad * L2)])

    a, b = minimize(mixed, [0.5, 0.5], jac=True, method="L-BFGS-B", bounds=[(0, None)] * 2).x
    return a * L + b * L2


# 6. Correction linear in the features


def curvature(P, T):
    """Fisher information of a given label about the log-odds, for every row."""
    C = P.shape[1]
    return ((P**2 @ T**2 / (P @ T)).sum(1) - (P**2).sum(1)) / (C - 1)


def linear_correction(H, L, T, g):
    """A few steps towards L + Hc W, and every row's own label taken back."""
    Hc, values, V = decompose(H)
    n, C = L.shape
    p = values.sum() / n
    k = curvature(softmax(L, axis=1), T).mean()
    A = Hc @ V / np.sqrt(k * values + p)  # Hc W = A Z
    back = p / (k * values + p)  # p |W|^2 = sum of back |Z|^2

    def loss(z):
        Z = z.reshape(-1, C)
        value, grad = likelihood(L + A @ Z, T, g)
        value -= np.sum(back[:, None] * Z**2) / 2
        return -value, -(A.T @ grad - back[:, None] * Z).ravel()

    z = np.zeros(A.shape[1] * C)
    # The first step of SciPy's L-BFGS has length 1: units are such that this is half the gradient.
    unit = np.linalg.norm(loss(z)[1]) / 2

    def in_units(z):
        value, grad = loss(unit * z)
        return value, unit * grad

    options = {"maxiter": steps, "ftol": 0, "gtol": 0}
    Z = unit * minimize(in_units, z, jac=True, method="L-BFGS-B", options=options).x
    L = L + A @ Z.reshape(-1, C)

    P, Q = softmax(L, axis=1), posterior(L, T, g)
    lev = np.sum((Hc @ V) ** 2 / (values + p / k), axis=1) / k
    step = lev / (1 - np.minimum(lev * curvature(P, T), 0.95))
    return L + step[:, None] * (P - Q)


# 7. and 8. Instance-dependent noise, weak features, posterior


def evidence(a):
    low, high = elasticity
    return np.clip((a - low) / (high - low), 0, 1)


def pooled_elasticity(N, K):
    """Exponent of a Poisson regression of errors on confusion, a level for each class."""
    C = len(N)

    def loss(a):
        value = 0.0
        for y in range(C):
            others = np.arange(C) != y
            logits = a[0] * np.log(K[y, others])
            value += N[y, others] @ (logits - logsumexp(logits))
        return -value

    return minimize(loss, [1.0], method="L-BFGS-B", bounds=[(0, 2)]).x[0]


def median_elasticity(T, K, n):
    """Slope of Theil and Sen of T's entries on K's, and which classes it was measured with."""
    C = len(T)
    large = n >= 5
    pairs = large[:, None] & large[None, :] & ~np.eye(C, dtype=bool)
    t, k = T[pairs], K[pairs]
    slopes = []
    for i in range(len(t)):
        for j in range(i):
            if k[i] != k[j]:
                slopes.append((t[i] - t[j]) / (k[i] - k[j]))
    return np.median(slopes) * k.mean() / t.mean(), pairs


def ambiguous_share(L, T, g):
    """The share of labels that are drawn from the features' own uncertainty."""
    C = len(T)
    P, Q = softmax(L, axis=1), posterior(L, T, g)
    K = Q.T @ P / Q.sum(0)[:, None]
    N = expected_counts(Q, g, usual=False)
    n = Q.sum(0)
    w = n @ (1 - np.diag(T)) / n.sum()
    k = n @ (1 - np.diag(K)) / n.sum()
    if C == 2:
        AB = unknown
    else:
        E = N.sum() - np.trace(N)
        u = E / (E + 30)
        A = u * evidence(pooled_elasticity(N, K)) + (1 - u) / 2
        slope, pairs = median_elasticity(T, K, n)
        E = N[pairs].sum()
        u = E / (E + 5 * C * C)
        B = u * evidence(slope) + (1 - u)
        AB = A * B
    return share * min(1, hidden * w / k) * AB, K


def instance_dependent(L, T, g):
    """Posterior and transition matrix with ambiguous labels and weak features allowed for."""
    C = len(T)

    def loss(z):
        value, _ = likelihood(np.exp(z[0]) * L, T, g)
        return -value + (z[0] / last_sharpness_sd) ** 2 / 2

    L = np.exp(minimize(loss, [0.0], method="L-BFGS-B").x[0]) * L
    m, K = ambiguous_share(L, T, g)
    P = softmax(L, axis=1)
    sharp = softmax(L / (1 - sharpening * m) ** 2, axis=1)
    low, high = known
    r = 1 / 2 + np.clip((P.max(1).mean() - low) / (high - low), 0, 1) / 2
    my = np.minimum(m, 0.9 * np.diag(T))
    Y = np.eye(C)[g]
    own = P[np.arange(len(g)), g][:, None]
    q = sharp * (T[:, g].T + my * (own - Y))
    q /= q.sum(1, keepdims=True)
    mean = r * (T + my[:, None] * (K - np.eye(C))) + (1 - r) * np.eye(C)
    return r * q + (1 - r) * Y, mean
