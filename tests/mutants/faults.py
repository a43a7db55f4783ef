"""Seeded faults: each must make a test fail. `run.py` in this folder applies them one by one.

A fault names a room (a folder), a text that occurs there exactly once, what replaces it, and the
test files that should notice. When code changes and the text is gone, `run.py` says so: write the
fault again in the new code.
"""

from typing import NamedTuple


class Fault(NamedTuple):
    """A fault in one place."""

    name: str
    room: str
    old: str
    new: str
    tests: str  # names of test files without test_ and .py; with c/ before it, of a C test


FAULTS = [
    # ---- the core: kernels and sampling
    Fault("dots skip the last entry", "csrc/kernels/scalar.c", "for (int64_t d = 0; d < size; d++)\n                sum += rows[j][d] * hs[i][d];", "for (int64_t d = 0; d + 1 < size; d++)\n                sum += rows[j][d] * hs[i][d];", "c/kernels"),
    Fault("the gradient uses updated rows", "csrc/kernels/scalar.c", "gradient[d] += weights[i] * rows[i][d];\n            rows[i][d] += steps[i] * h[d];", "rows[i][d] += steps[i] * h[d];\n            gradient[d] += weights[i] * rows[i][d];", "c/kernels"),
    Fault("residual of the target is negative", "csrc/kernels/scalar.c", "(i == 0) - 1 / (1 + exp(-(double)x[i]))", "(i != 0) - 1 / (1 + exp(-(double)x[i]))", "c/kernels"),
    Fault("alias: share of the rich is not lowered", "csrc/common", "share[rich] -= 1 - share[poor];", "share[rich] -= share[poor];", "objectives"),
    Fault("alias: thresholds are half", "csrc/common", "double scaled = p * 4294967296.0;", "double scaled = p * 2147483648.0;", "objectives"),
    Fault("top-k: ties in the wrong order", "csrc/common", "(weights[a] == weights[b] && a > b)", "(weights[a] == weights[b] && a < b)", "label_tree"),
    Fault("noise weights ignore the power", "csrc/objectives", "weights[j] = pow(counts[j], power);", "weights[j] = counts[j];", "objectives gradients"),
    Fault("NCE offset with the wrong sign", "csrc/words", "scores[j] -= offset[dcme_row_of(draw->codes[j])];", "scores[j] += offset[dcme_row_of(draw->codes[j])];", "objectives gradients"),
    Fault("a noise sample may be the target", "csrc/objectives", "time */\n        n += word != target;", "time */\n        n += 1;", "objectives"),
    Fault("logistic loss of the target has the wrong sign", "csrc/words", "dcme_softplus(-(double)scores[j])", "dcme_softplus((double)scores[j])", "objectives trainer"),
    Fault("noise stream is not saved", "csrc/objectives", "    DCME_SAVE(arena, d->stream);\n", "", "stops"),
    Fault("the next draw is not saved", "csrc/objectives", "    DCME_SAVE(arena, d->next);\n", "", "stops"),
    Fault("Huffman: depth of a path", "csrc/objectives", "int64_t length = 1;", "int64_t length = 0;", "objectives"),
    Fault("hierarchical softmax: the other child", "csrc/words", "(real)dcme_label_of(draw->codes[j]) - (j == 0)", "(real)(1 - dcme_label_of(draw->codes[j])) - (j == 0)", "objectives"),
    Fault("cluster move: pending sums are kept", "csrc/objectives", "dcme_cluster_sums_clear(sums, clusters->model);", "", "objectives gradients"),
    # ---- the core: windows and sentences
    Fault("the window reaches one too far", "csrc/words", "dcme_min(i + half + 1, end)", "dcme_min(i + half + 2, end)", "objectives"),
    Fault("CBOW: the target's row does not come back into the list", "csrc/words", "        rows[i] = model->input + batch->words[i] * model->stride; /* the gap moves on */\n", "", "objectives"),
    Fault("CBOW: gradient is not divided", "csrc/words", "worker->trainer->options.gradient == DCME_EXACT ? 1 / total : 1;", "1;", "objectives"),
    Fault("skip-gram: the last pair is lost", "csrc/words/skipgram.c", "    learn_pair(worker, waiting, &current);\n    learn_pair(worker, none, &current);", "    learn_pair(worker, none, &current);", "objectives"),
    Fault("word order: left and right are swapped", "csrc/words", "rows[count++] = model->neighbors[0] + batch->words[i - 1] * model->stride;", "rows[count++] = model->neighbors[1] + batch->words[i - 1] * model->stride;", "objectives"),
    Fault("the last word of a line is lost", "csrc/words", "} while (!(id & DCME_SENTENCE_END) && position < end);", "} while (!(trainer->corpus.ids[position] & DCME_SENTENCE_END) && position < end);", "trainer"),
    Fault("subsampling is inverted", "csrc/words", "<= keep[word];", "> keep[word];", "trainer train"),
    Fault("the learning rate does not fall", "csrc/engine", "s->lr * (1 - done /", "s->lr * (1 - 0 * done /", "objectives"),
    Fault("subsampling: no second term", "csrc/words/trainer.c", "sqrt(ratio) + ratio;", "sqrt(ratio);", "objectives"),
    Fault("shards: ids are not checked", "csrc/words", "return largest < corpus->items;", "return largest <= corpus->items;", "trainer c/memory"),
    Fault("n-grams: the shortest is one longer", "csrc/text", "n < ngrams->shortest || (n == 1 && (i == 0", "n <= ngrams->shortest || (n == 1 && (i == 0", "subwords"),
    # ---- the core: text
    Fault("UTF-8: surrogates are valid", "csrc/text", "lead == 0xed ? 0x9f", "lead == 0xed ? 0xbf", "encode c/text"),
    Fault("UTF-8: overlong sequences are valid", "csrc/text", "lead == 0xe0 ? 0xa0", "lead == 0xe0 ? 0x80", "encode c/text"),
    Fault("vocabulary: merged counts are lost", "csrc/text", "    v->counts[slot->id] += count;", "    v->counts[slot->id] = count;", "encode vocabulary"),
    Fault("vocabulary: words are not counted", "csrc/text", "    v->counts[slot->id]++;\n    if (e->ids)", "    v->counts[slot->id] = 1;\n    if (e->ids)", "encode"),
    # ---- the core: documents, classes, levels
    Fault("hinge: no margin", "csrc/classify", "return MARGIN > score ? MARGIN - score : 0;", "return 0 > score ? MARGIN - score : 0;", "gradients"),
    Fault("hinge: other labels are errors", "csrc/classify", "scores[*one - column] = missed[one - label];", "scores[*one - column] = 0;", "gradients"),
    Fault("class bounds without the entropy", "csrc/classify", "clusters->square[k] * products[stride + k] + clusters->entropy[k];", "clusters->square[k] * products[stride + k];", "classify gradients classify_loss"),
    Fault("a cluster of classes is drawn twice", "csrc/classify", "k++; /* count only", "; /* count only", "gradients"),
    Fault("dual solver: lambda without weights of documents", "csrc/classify/dual_hinge.c", "total += instances->weights ? instances->weights[i] : 1;", "total += 1;", "dual"),
    Fault("dual solver: a document's weight is lost", "csrc/classify/dual_hinge.c", "(real)(me->shared->lambda / batch->weights[d])", "(real)me->shared->lambda", "dual"),
    Fault("SCDV: a repeated word counts once", "csrc/documents", "            c->counts[ids[i]]++;", "            c->counts[ids[i]] = 1;", "documents scdv"),
    Fault("SCDV: threshold is not applied", "csrc/documents", "value != 0 && fabsf(value) >= threshold", "value != 0", "documents scdv"),
    Fault("levels: numbers on the other side of a border", "dcme_w2v/numeric/levels.py", "(grid[1:] + grid[:-1]) / 2, numbers", "grid[1:], numbers", "numeric"),
    Fault("levels: the squares are not weighted", "dcme_w2v/numeric/levels.py", "weights * shifted**2]", "shifted**2]", "numeric"),
    # ---- files and checkpoints
    Fault("atomic write: no fsync", "dcme_w2v/files/atomic.py", "                    os.fsync(number)\n", "", "hostile_files"),
    Fault("atomic write: temporary file stays", "dcme_w2v/files/atomic.py", "                os.unlink(name, dir_fd=folder)\n", "                pass\n", "hostile_files"),
    Fault("temporary files of running processes are removed", "dcme_w2v/files/atomic.py", "not platform.is_running(int(found[1]))", "True", "hostile_files"),
    Fault("permissions are not kept", "dcme_w2v/files/atomic.py", "                        platform.set_access(number, old)\n", "                        pass\n", "hostile_files"),
    Fault("another model is replaced", "dcme_w2v/formats/artifact.py", "    if kind_of_artifact(path) not in (OF_CLASSES if kind in OF_CLASSES else [kind]):\n", "    if False:\n", "artifact paths_special"),
    Fault("arrays may overlap", "dcme_w2v/formats/artifact.py", "begin != end or found is None", "found is None", "artifact"),
    Fault("JSON with NaN is read", "dcme_w2v/files/opening.py", "    if not math.isfinite(number := float(text)):", "    if math.isnan(number := float(text)) and False:", "artifact bad_models"),
    Fault("checkpoint: checksum is not compared", "dcme_w2v/training/checkpoint_folder.py", "wanted != _checksum(model.description, model.arrays)", "wanted is None", "checkpoints"),
    Fault("checkpoint: an option may differ", "dcme_w2v/training", "if name in kept and name not in free\n", "if False\n", "checkpoints resume"),
    Fault("checkpoint: other data", "dcme_w2v/training", "        if kept[\"hashes\"] == now.hashes:\n", "        if True:\n", "checkpoints resume"),
    Fault("pipes are opened as files", "dcme_w2v/files/opening.py", "        if not stat.S_ISREG(found.st_mode):\n", "        if False:\n", "hostile_files bad_models"),
    Fault("truncated archives are read without a word", "dcme_w2v/files", "                    if self._begins:\n                        return", "                    if True:\n                        return", "corpus compression"),
    Fault("a folder that cannot be replaced is lost", "dcme_w2v/formats/vectors", "                old.rename(target)\n            _remove(temporary)", "                pass\n            _remove(temporary)", "static_folder"),
    Fault("another name of a trained file is held out", "dcme_w2v/formats", "if path in held or same:", "if path in held:", "heldout"),
    Fault("another name of an input is overwritten", "dcme_w2v/files/paths.py", "target.identity is not None and target.identity == other.identity", "target.path == other.path", "paths"),
    Fault("another user's link is followed", "dcme_w2v/files/atomic.py", "if _is_planted(link, place.parent):", "if False:", "hostile_files"),
    # ---- numeric
    Fault("k-means: distances without the square of the center", "dcme_w2v/numeric", "    distances += np.einsum(\"ij,ij->i\", centers, centers)\n", "", "numeric"),
    Fault("k-means: an empty cluster stays", "dcme_w2v/numeric", "    if len(empty):\n        centers[empty] =", "    if False:\n        centers[empty] =", "numeric"),
    Fault("L-BFGS never stops early", "dcme_w2v/numeric", "            raise StopIteration\n", "            pass\n", "numeric classify_loss"),
    # ---- text and words
    Fault("phrases: score without the minimum count", "dcme_w2v/text", "return (ab - options.min_count) / (a * b) * tokens", "return ab / (a * b) * tokens", "phrases"),
    Fault("phrases: threshold is inclusive", "dcme_w2v/text", "np.flatnonzero(scores > threshold)", "np.flatnonzero(scores >= threshold)", "phrases"),
    Fault("postprocess: nothing is subtracted", "dcme_w2v/words", "matrix - mean.astype(np.float32)", "matrix - 0 * mean.astype(np.float32)", "repair"),
    Fault("reduce: the last directions are kept", "dcme_w2v/words", "directions[:, ::-1][:, :dim]", "directions[:, :dim]", "repair"),
    Fault("held-out bounds without the entropy", "dcme_w2v/words", "@ u.T + entropy +", "@ u.T +", "heldout"),
    Fault("out-of-vocabulary vector is a sum", "dcme_w2v", "self.rows[rows].mean(axis=0, dtype=np.float32)", "self.rows[rows].sum(axis=0, dtype=np.float32)", "subwords fasttext"),
    Fault("lengths of the first rows are kept for all", "dcme_w2v/words", "            if limit is None:  # do not cache", "            if True:  # do not cache", "neighbors"),
    Fault("uSIF: weight of unseen words", "dcme_w2v/sentences", "unseen_weight=2.0", "unseen_weight=1.0", "sentences"),
    Fault("search: the tokenizer is not loaded", "dcme_w2v/search", "        found.tokenizer = Tokenizer.of_entry(model.description, str(path))\n", "", "search"),
    Fault("BM25: long documents are preferred", "dcme_w2v/search", "k1 * (1 - b + b * lengths / mean)", "k1 * (1 - b + b * mean / lengths)", "search"),
    # ---- classifiers
    Fault("metrics: ties count for the model", "dcme_w2v/classify", "(row >= row[label]).sum() for label in known", "(row > row[label]).sum() + 1 for label in known", "classify_metrics"),
    Fault("metrics: discounts start at log2(1)", "dcme_w2v/classify", "np.arange(2, max(RANKS) + 2)", "np.arange(3, max(RANKS) + 3)", "classify_metrics"),
    Fault("metrics: macro over all classes", "dcme_w2v/classify", "seen = (wanted > 0) | (self._predicted > 0)", "seen = wanted >= 0", "classify_metrics"),
    Fault("threshold: one label too many", "dcme_w2v/classify", "best = least - 1 + int(f1[least - 1 :].argmax())", "best = int(f1.argmax())", "classify_metrics classify"),
    Fault("held-out figures: weights are lost", "dcme_w2v/classify", "weights = None if data.weights is None else data.weights[rows]", "weights = None", "classify_weights"),
    Fault("factors: weights are lost", "dcme_w2v/classify", "own = np.ones(len(rows)) if weights is None else weights[rows]", "own = np.ones(len(rows))", "classify_weights"),
    Fault("compressed models: damage is not noticed", "dcme_w2v/classify/compact.py", "if unpacker.eof and not unpacker.unused_data:", "if True:", "small_models"),
    Fault("compressed models: weights of documents are lost", "dcme_w2v/classify/small.py", "if data.weights is not None:", "if False:", "small_models"),
    # ---- document vectors, few labels, latent classes
    Fault("mixture: scatter of the means is added", "dcme_w2v/scdv", "(points.scatter - (means * counts[:, None]).T @ means) / count", "(points.scatter + (means * counts[:, None]).T @ means) / count", "mixture"),
    Fault("mixture: posteriors are not normalized", "dcme_w2v/scdv", "    logits /= totals\n", "", "mixture"),
    Fault("mixture: half of the log volume", "dcme_w2v/scdv", "half_pi - 0.5 * float(log_volume)", "half_pi - float(log_volume)", "mixture"),
    Fault("SCDV: power without its sign", "dcme_w2v/scdv", "np.float32(options.power or 0), values\n", "np.float32(options.power or 0), 1\n", "scdv documents"),
    Fault("latent: alpha is not divided by the sizes", "dcme_w2v/latent/cost.py", " / np.maximum(totals, 1e-300)", "", "latent_math"),
    Fault("full gradient: weights are not in the total", "dcme_w2v/classify/solver.py", "else float(sample_weight.sum(dtype=np.float64))", "else len(labels)", "classify_weights"),
    Fault("evidence: signs are lost", "dcme_w2v/few_labels", "signs = np.where(found.ravel()[place] < 0, -1, 1)", "signs = np.where(found.ravel()[place] < 0, 1, 1)", "few_labels"),
    Fault("evidence: rarest pairs are kept", "dcme_w2v/few_labels", "np.argsort(-rank[above], kind=\"stable\")[:count]", "np.argsort(rank[above], kind=\"stable\")[:count]", "few_labels"),
    Fault("latent: a rising cost is not noticed", "dcme_w2v/latent", "    if not math.isfinite(value):", "    if False:", "latent"),
    Fault("latent: all starts are the first", "dcme_w2v/latent", "START_NUMBERS[kind], number]", "START_NUMBERS[kind]]", "latent"),
    # ---- clusters
    Fault("mixing: share of the sum", "dcme_w2v/cluster", "    found /= shards\n", "", "mixing"),
    Fault("mixing: eigenvalues below zero", "dcme_w2v/cluster", "common + (second - common) / context", "common - (second - common) / context", "mixing"),
    Fault("offsets: a shard's documents do not count", "dcme_w2v/cluster", "weights=[counts[-1] for counts in self._counts]", "weights=None", "mixing"),
    Fault("workers: weights of documents are not sent", "dcme_w2v/cluster", "submit(given_value, own,", "submit(given_value, dataclasses.replace(own, weights=None),", "cluster_classify"),
    Fault("local workers stay", "dcme_w2v/cluster", "                    process.kill()\n", "                    pass\n", "cluster_faults"),
]  # fmt: skip
