"""A plain second implementation of the default method, as docs/method.md has it.

One file, NumPy and SciPy, float64, for small data: some 2,000 rows at most, so that no
stage samples them, all labelled, none locked, every class with a row. Functions stand
in the order of the page, its stages in brackets. Legend: n rows, d columns, C classes;
H rows, g given labels, Y one-hot labels, S scores, L log-odds, T[clean, given], P and Q
as on the page.

Random frequencies (stage 3) are drawn in another way than in the package: where they
are used, the two agree no closer than two draws do.
"""

import numpy as np
from scipy.optimize import brentq, minimize, minimize_scalar
from scipy.spatial.distance import pdist
from scipy.special import log_softmax, softmax
from scipy.stats import beta, foldnorm

# With the names of the page.
SAME = 1e-5
STRENGTHS, STEEPNESS, LEARNT_ERRORS = 10.0 ** np.arange(-4, 3), 4.0, 1.0
MOST_LEVERAGE = 0.999
BANDWIDTH, MAX_FREQUENCIES, ROWS_PER_FREQUENCY = 1.5, 256, 8
ERRORS, LEAST_GAIN = 3.0, 0.02
SHARPNESS_PRECISION, LEAST_SEPARATION, ROWS_PER_PAIR = 3.0, 0.1, 10
MOST_UNCERTAINTY = 0.75
USUAL_ERRORS, USUAL_ROWS = 0.1, 10.0
MAX_ROUNDS, TOLERANCE, ROUGH = 8, 0.002, 1e-6
STARTS = 0.95, 0.75, 0.5, 0.25
ANCHORS, ANCHOR_ROWS = 0.2, 20.0
WEIGHT_PRECISION, INTERCEPT_PRECISION, LEAST_VARIANCE = 30.0, 0.001, 1e-4
ROWS_PER_WEIGHT, WEIGHT_ROUNDS, WEIGHT_STEPS = 2, 2, 30
LEAST_STEP = 1e-5  # log-likelihood per row that a step of L-BFGS must gain
STEPS, MOST_SELF_INFLUENCE = 3, 0.95
LAST_SHARPNESS_PRECISION = 1 / 0.2**2
SHARE, HIDDEN, UNKNOWN, ELASTICITY = 0.3, 6.0, 0.5, (0.1, 0.5)
POOLED_ROWS, MEDIAN_ROWS, LEAST_ROWS, MOST_OF_RIGHT = 30.0, 5.0, 5.0, 0.9
LEAST_K = 1e-6
SHARPENING, KNOWN = 0.5, (0.6, 0.7)


def correct(X, given):
    """Posterior (n, C), transition matrix (C, C), share of right given labels."""
    rank = np.argsort(np.argsort(-np.bincount(given), kind="stable"))  # 1
    rows, original = canonical_rows(X, rank[given])
    H, g = X[rows].astype(float), rank[given][rows]
    Y = np.eye(len(rank))[g]
    S, rho = best_scores(H, Y, g)  # 2
    H, S, rho = with_fourier_features(H, S, rho, Y, g)  # 3
    if not learnt(S, g):
        return nothing_learnt(given)
    L, T = calibrate(S, g, uncertainty(H, rho))  # 4
    L = refit(H, L, T, g, rho)  # 5
    L = add_linear(H, L, T, g)  # 6
    Q, T = final_posterior(L, T, g)  # 7, 8
    Q, T = Q[original][:, rank], T[np.ix_(rank, rank)]
    return Q, T, Q[np.arange(len(given)), given].mean()  # 9


def nothing_learnt(given):
    """Every row has the shares of the given classes (2)."""
    shares = np.bincount(given) / len(given)
    T = np.full((len(shares), len(shares)), 1 / len(shares))
    return np.tile(shares, (len(given), 1)), T, shares @ shares


def canonical_rows(X, given):
    """Rows to work on in their order (1), and for each row which of them it is."""
    Z = (X - X.mean(0)) @ np.random.default_rng(0).normal(size=(X.shape[1], 3))
    Z /= Z.std(0)
    kept, original = [], np.zeros(len(X), int)
    for i in np.lexsort((X.sum(1), given)):
        near = np.abs(Z[kept] - Z[i]).max(1) <= SAME
        twins = np.flatnonzero(near & (given[kept] == given[i]))
        original[i] = twins[0] if len(twins) else len(kept)
        kept += [] if len(twins) else [i]
    return np.array(kept), original


def principal(H):
    """Centred rows, eigenvalues and eigenvectors of their Gram matrix, if not 0."""
    Hc = H - H.mean(0)
    _, roots, Vt = np.linalg.svd(Hc, full_matrices=False)
    real = roots > 1e-6 * roots.max()
    return Hc, roots[real] ** 2, Vt[real].T


def leave_one_out(H, Y, rho):
    """Scores of each row by ridge regression on all others (2)."""
    n = len(H)
    Hc, values, V = principal(H)
    A, Yc = Hc @ V, Y - Y.mean(0)
    shrunk = A / (values + rho * values.mean())
    F = shrunk @ (A.T @ Yc)
    lev = (np.sum(shrunk * A, axis=1) + 1 / n)[:, None]
    S = Y.mean(0) + (F - (lev - (1 - lev) / (n - 1)) * Yc) / (1 - lev)
    return np.where(lev >= MOST_LEVERAGE, Y.mean(0), S)


def best_scores(H, Y, g):
    """Scores, and their strength by agreement with the given labels (2)."""
    agree = []
    for rho in STRENGTHS:
        S = leave_one_out(H, Y, rho)
        agree.append(np.sum(S[np.arange(len(g)), g] >= S.max(1)))
    a = max(agree)
    v = np.sqrt(max(a * (1 - a / len(g)), 1.0))
    w = np.exp(STEEPNESS * (np.array(agree) - a) / v)
    rho = np.exp(w @ np.log(STRENGTHS) / w.sum())
    return leave_one_out(H, Y, rho), rho


def learnt(S, g):
    """Tell whether scores agree with the labels beyond chance (2)."""
    n, C = S.shape
    A0 = np.bincount(S.argmax(1), minlength=C) @ np.bincount(g, minlength=C) / n**2
    A = np.mean(S.argmax(1) == g)
    return (A - A0) / np.sqrt(A0 * (1 - A0) / n) > LEARNT_ERRORS


def fourier_features(H, most):
    """Cosine and sine of random frequencies (3)."""
    number = min(most, len(H) // ROWS_PER_FREQUENCY)
    z = np.random.default_rng(0).normal(size=(H.shape[1], number))
    angles = H @ z * BANDWIDTH / np.median(pdist(H))
    return np.hstack([np.cos(angles), np.sin(angles)])


def gain(new, S, g):
    """Share of labels that scores predict more than S, and if it is enough (3)."""
    right, f = S.argmax(1) == g, np.bincount(g) / len(g)
    more = (new.argmax(1) == g) * 1.0 - right
    error = more.std() / np.sqrt(len(g))
    least = max(ERRORS * error, LEAST_GAIN * (right.mean() - f @ f))
    return more.mean(), more.mean() > least


def with_fourier_features(H, S, rho, Y, g):
    """Rows with more columns and their scores, if labels ask for them (3)."""
    H = (H - H.mean(0)) * 2.0 ** -np.floor(np.log2(H.std(0).max()))
    deviation = np.where(H.std(0) > 0, H.std(0), 1)
    trials = []
    for columns in (H, H / deviation):
        F = fourier_features(columns, MAX_FREQUENCIES // 2)
        trial, _ = best_scores(np.hstack([10 * S / S.std(), F]), Y, g)
        trials.append((*gain(trial, S, g), columns))
    _, clear, columns = max(trials, key=lambda trial: trial[0])
    if clear:
        wide = np.hstack([H, fourier_features(columns, MAX_FREQUENCIES)])
        wide_S, wide_rho = best_scores(wide, Y, g)
        if gain(wide_S, S, g)[1]:
            return wide, wide_S, wide_rho
    return H, S, rho


def uncertainty(H, rho):
    """Variance of a score for labels of variance 1 (4)."""
    Hc, values, V = principal(H)
    A = Hc @ V
    hat = A / (values + rho * values.mean()) @ A.T
    return np.mean(np.sum(hat**2, axis=1))


def sharpness_of_shape(S, uncertain=0.0, shares=None):
    """Factor that makes log-odds of scores, by how two classes lie apart (4)."""
    best, counts, margins = S.argmax(1), {}, {}
    for row in S:
        pair = tuple(sorted(np.argsort(row)[-2:]))
        counts[pair] = counts.get(pair, 0) + 1
    for (a, b), count in counts.items():
        m = (S[:, a] - S[:, b])[(best == a) | (best == b)]
        if count >= ROWS_PER_PAIR and m.std() > 0:
            margins[a, b] = m
    if not margins:
        return 1 / S.std()
    pairs, noise = list(margins.values()), []
    if shares is not None:
        noise = [
            uncertain * (shares[a] + shares[b]) / m.var()
            for (a, b), m in margins.items()
        ]
    weights = [counts[pair] for pair in margins]
    ratios = [np.abs(m - m.mean()).mean() / m.std() for m in pairs]
    ratio = np.average(ratios, weights=weights)

    def geary(u):  # mean of |z| over its standard deviation, z ~ Normal(u, 2 u)
        return folded(u) / np.sqrt(u**2 + 2 * u)

    def folded(u):
        return foldnorm.mean(u / np.sqrt(2 * u), scale=np.sqrt(2 * u))

    if geary(LEAST_SEPARATION) < ratio < geary(100):
        u = brentq(lambda u: geary(u) - ratio, LEAST_SEPARATION, 100)
    else:
        u = LEAST_SEPARATION if ratio < 0.9 else 100
    log_variance = np.average([np.log(m.var()) for m in pairs], weights=weights)
    q = np.average(noise, weights=weights) * (u + 2) / 2 if noise else 0.0
    q = min(q, MOST_UNCERTAINTY)
    return np.sqrt((u**2 + 2 * u) / np.exp(log_variance)) / (1 - q)


def posterior(L, T, g):
    """P, Q and the log-likelihood of the given labels (4); its slope in L is Q - P."""
    joint = np.exp(log_softmax(L, axis=1)) * T.T[g]
    total = joint.sum(1, keepdims=True)
    return softmax(L, axis=1), joint / total, np.log(total).sum()


def fit_sharpness(L, T, g, start, centre, precision, free=0, ftol=1e-12):
    """Most probable factor of L, diagonal of T and their log posterior (4).

    ``free`` numbers multiply the diagonal: none, one, or one of two for each class.
    L-BFGS ends when a step gains less than ``ftol`` per row.
    """
    a, b = USUAL_ERRORS * USUAL_ROWS, (1 - USUAL_ERRORS) * USUAL_ROWS
    shares = np.bincount(g, minlength=len(T)) / len(g)

    def place(z):
        now = T * (1 + np.diag(np.exp(z[1:] if free else [0.0]) * np.ones(len(T)) - 1))
        return np.exp(z[0]), now / now.sum(1, keepdims=True)

    def loss(z):
        s, now = place(z)
        value = posterior(s * L, now, g)[2] - precision * np.log(s / centre) ** 2 / 2
        if free:
            e = shares @ (1 - np.diag(now))
            value += np.log(beta.pdf(e, a + 1, b + 1) / 2 + 1 / 2)
        return -value / len(g)

    z = np.append(np.log(start), np.zeros(free))
    bounds, options = [(x - 8, x + 8) for x in z], {"ftol": ftol, "gtol": 1e-6}
    best = minimize(loss, z, (), "L-BFGS-B", "3-point", bounds=bounds, options=options)
    return *place(best.x), -best.fun * len(g)


def fit_transition(L, T, g, s, centre, ftol=1e-12):
    """Sharpness, T and their log posterior, from a start (4)."""
    C, f = len(T), np.bincount(g) / len(g)
    free = 1 if C > 2 else 2
    for _ in range(MAX_ROUNDS if C > 2 else 0):
        before = T
        counts = posterior(s * L, T, g)[1].T @ np.eye(C)[g]
        wrong = USUAL_ERRORS * USUAL_ROWS * f[:, None] / (C - 1) * (1 - np.eye(C))
        T = sparse_transition(counts + wrong, len(g))
        s, T, _ = fit_sharpness(L, T, g, s, centre, SHARPNESS_PRECISION, free, ROUGH)
        if np.abs(T - before).max() < TOLERANCE:
            break
    return fit_sharpness(L, T, g, s, centre, SHARPNESS_PRECISION, free, ftol)


def sparse_transition(N, n):
    """T that says no more than the counts prove (4)."""
    C, h = len(N), np.log(n) / 2
    total, E = N.sum(1), N.sum(1) - np.diag(N)
    pooled, T = E.sum() / total.sum(), np.zeros((C, C))
    for y in range(C):
        e, others = E[y] / total[y], np.arange(C) != y
        kl = e * np.log(e / pooled) + (1 - e) * np.log((1 - e) / (1 - pooled))
        e = e if total[y] * kl > h else pooled
        t, proven = N[y, others] / E[y], np.zeros(C - 1, bool)
        for _ in range(4):
            u = 1e-9 if proven.all() else t[~proven].mean()
            proven = E[y] * (t * np.log(t / u) - t + u) > h
        spread = np.where(proven, t, u)
        T[y, others], T[y, y] = e * spread / spread.sum(), 1 - e
    return (T + 1e-6) / (T + 1e-6).sum(1, keepdims=True)


def starts(S, g):
    """Transition matrices to start from (4)."""
    C = S.shape[1]
    found = [right * np.eye(C) + (1 - right) / C for right in STARTS]
    N, top = np.zeros((C, C)), np.sort(S, axis=1)
    margin = top[:, -1] - top[:, -2]
    for y in range(C):
        rows = np.flatnonzero(S.argmax(1) == y)
        clearest = rows[np.argsort(-margin[rows], kind="stable")]
        N[y] = np.bincount(g[clearest[: int(np.ceil(ANCHORS * len(rows)))]], None, C)
    right = np.clip((np.trace(N) + 1) / (N.sum() + 2), 1 / C, 0.999)
    N += ANCHOR_ROWS * (1 - right) / (C - 1)
    N += ANCHOR_ROWS * (right - (1 - right) / (C - 1)) * np.eye(C)
    return [*found, N / N.sum(1, keepdims=True)]


def climb(L, U, T, g, precision, curvature, steps):
    """L + U W by few steps of L-BFGS from W = 0 (4, 6).

    Entries of W times the root of the curvature are the coordinates. SciPy's first step
    has length 1; in units of half the gradient's length it is half the gradient.
    """
    n, C = L.shape
    precision, root = precision[:, None], np.sqrt(curvature)[:, None]

    def loss(z, unit):
        W = unit * z.reshape(-1, C) / root
        P, Q, value = posterior(L + U @ W, T, g)
        slope = precision * W - U.T @ (Q - P)
        value = np.sum(precision * W**2) / 2 - value
        return value / n, (unit * slope / root).ravel() / n

    nowhere = np.zeros(U.shape[1] * C)
    unit = n * np.linalg.norm(loss(nowhere, 1.0)[1]) / 2
    options = {"maxiter": steps, "ftol": LEAST_STEP, "gtol": 1e-6}
    z = minimize(loss, nowhere, unit, "L-BFGS-B", jac=True, options=options).x
    return L + U @ (unit * z.reshape(-1, C) / root)


def map_scores(S, L, T, g):
    """Log-odds that are any linear map of the scores, near L (4)."""
    n, C = S.shape
    values, V = np.linalg.eigh(np.cov(S.T, bias=True))
    keep = values > LEAST_VARIANCE * values.max()
    white = (S - S.mean(0)) @ V[:, keep] / np.sqrt(values[keep])
    U = np.hstack([np.ones((n, 1)), white])
    precision = np.full(U.shape[1], WEIGHT_PRECISION)
    precision[0] = INTERCEPT_PRECISION
    L = U @ np.linalg.lstsq(U, L, rcond=None)[0]
    return climb(L, U, T, g, precision, precision + 0.1 * n / C, WEIGHT_STEPS)


def calibrate(S, g, uncertain):
    """Log-odds and T from leave-one-out scores (4)."""
    shares = np.bincount(g, minlength=S.shape[1]) / len(g)
    L, centre, ends = sharpness_of_shape(S, uncertain, shares) * S, 1.0, []
    for T in starts(S, g):
        s, T, _ = fit_sharpness(L, T, g, centre, centre, SHARPNESS_PRECISION, 0, ROUGH)
        ends.append(fit_transition(L, T, g, s, centre, ROUGH))
    s, T, _ = max(ends, key=lambda end: end[2])
    s, T, _ = fit_transition(L, T, g, s, centre)
    L = s * L
    enough = len(S) >= ROWS_PER_WEIGHT * S.shape[1] ** 2
    for _ in range(WEIGHT_ROUNDS if enough else 0):
        L, centre = map_scores(S, L, T, g), centre / s
        s, T, _ = fit_transition(L, T, g, 1.0, centre)
        L = s * L
    return L, T


def refit(H, L, T, g, rho):
    """Log-odds with those of ridge on the posterior (5)."""
    S = leave_one_out(H, posterior(L, T, g)[1], rho)
    new = sharpness_of_shape(S) * S
    new *= fit_sharpness(new, T, g, 1.0, 1.0, SHARPNESS_PRECISION)[0]
    if len(S) >= ROWS_PER_WEIGHT * S.shape[1] ** 2:
        new = map_scores(S, new, T, g)

    def loss(z):
        P, Q, value = posterior(z[0] * L + z[1] * new, T, g)
        slopes = np.array([np.sum((Q - P) * L), np.sum((Q - P) * new)])
        return -value / len(g), -slopes / len(g)

    bounds, options = [(0, None)] * 2, {"ftol": 1e-12, "gtol": 1e-8}
    ab = minimize(loss, [0.5] * 2, (), "L-BFGS-B", True, bounds=bounds, options=options)
    return ab.x[0] * L + ab.x[1] * new


def curvature(P, T):
    """Fisher information of a given label about the log-odds, by row (6)."""
    C = len(T)
    return ((P**2 @ T**2 / (P @ T)).sum(1) - (P**2).sum(1)) / (C - 1)


def add_linear(H, L, T, g):
    """Correction linear in the features, own label taken back (6)."""
    Hc, values, V = principal(H)
    p, k = values.sum() / len(H), curvature(softmax(L, axis=1), T).mean()
    scale = 1 / np.sqrt(k * values + p)
    ones = np.ones(len(scale))
    L = climb(L, Hc @ V * scale, T, g, p * scale**2, ones, STEPS)
    P, Q, _ = posterior(L, T, g)
    h = np.sum((Hc @ V) ** 2 / (values + p / k), axis=1) / k
    step = h / (1 - np.minimum(h * curvature(P, T), MOST_SELF_INFLUENCE))
    return L + step[:, None] * (P - Q)


def pooled_elasticity(N, K):
    """Exponent of the Poisson regression, each class with its own level (7)."""
    off = ~np.eye(len(N), dtype=bool)
    N, log_K = (A[off].reshape(len(K), -1) for A in (N, np.log(np.maximum(K, LEAST_K))))

    def loss(a):
        return -np.sum(N * log_softmax(a * log_K, axis=1))

    options = {"xatol": 1e-6}
    return minimize_scalar(loss, bounds=(0, 2), method="bounded", options=options).x


def median_elasticity(N, K):
    """Slope of Theil and Sen between entries off the diagonal (7)."""
    large = N.sum(1) >= LEAST_ROWS
    cells = large[:, None] & large & ~np.eye(len(N), dtype=bool)
    t, k = (N / np.maximum(N.sum(1, keepdims=True), 1e-6))[cells], K[cells]
    i, j = np.triu_indices(len(k), 1)
    if len(k) > 400:
        order, half = np.argsort(k), len(k) // 2
        i, j = order[:half], order[-half:]
    real = np.abs(k[j] - k[i]) > 1e-12
    slopes = (t[j] - t[i])[real] / (k[j] - k[i])[real]
    return np.median(slopes) * k.mean() / t.mean() if real.any() else 0.0


def ambiguity_share(P, Q, T, g):
    """Share of the labels that are drawn from P, and mean confusion (7)."""
    C = len(T)
    N, n = Q.T @ np.eye(C)[g], Q.sum(0)[:, None]
    K = np.where(n < 1e-6, np.eye(C), Q.T @ P / np.maximum(n, 1e-6))
    w, k = (Q.mean(0) @ (1 - np.diag(M)) for M in (T, K))
    m, E = SHARE * min(1, HIDDEN * w / k), w * len(g)
    if C == 2:
        return m * UNKNOWN, K
    low, high = ELASTICITY
    elasticities = pooled_elasticity(N, K), median_elasticity(N, K)
    v, v2 = np.clip((np.array(elasticities) - low) / (high - low), 0, 1)
    u, u2 = E / (E + POOLED_ROWS), E / (E + MEDIAN_ROWS * C * C)
    return m * (u * v + (1 - u) * UNKNOWN) * (u2 * v2 + (1 - u2)), K


def final_posterior(L, T, g):
    """Posterior (8) and T averaged over the rows of each class (7)."""
    L = L * fit_sharpness(L, T, g, 1.0, 1.0, LAST_SHARPNESS_PRECISION)[0]
    P, Q, _ = posterior(L, T, g)
    m, K = ambiguity_share(P, Q, T, g)
    low, high = KNOWN
    r = 1 / 2 + np.clip((P.max(1).mean() - low) / (high - low), 0, 1) / 2
    clean, Y = softmax(L / (1 - SHARPENING * m) ** 2, axis=1), np.eye(len(T))[g]
    m = np.minimum(m, MOST_OF_RIGHT * np.diag(T))
    q = clean * (T.T[g] + m * (np.sum(P * Y, axis=1, keepdims=True) - Y))
    q /= q.sum(1, keepdims=True)
    T = T + m[:, None] * (K - np.eye(len(T)))
    return r * q + (1 - r) * Y, r * T + (1 - r) * np.eye(len(T))
