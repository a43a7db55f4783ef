"""The program as a whole: exit codes, one-line errors, word2vec.c's command lines."""

import os
import re
import tempfile
from pathlib import Path

import click
import pytest
from helpers import ALL_COMMANDS

from dcme_w2v import __version__
from dcme_w2v.cli import machine as doctor
from dcme_w2v.cli.main import program
from dcme_w2v.cli.options import given_options
from dcme_w2v.errors import ResourceError


@pytest.mark.parametrize("name", ALL_COMMANDS)
def test_every_command_has_help_and_suggests_the_nearest_flag(name, cli):
    line = name.removeprefix("dcme-w2v")
    assert cli(f"{line} --help").startswith(f"Usage: {name}")
    assert ALL_COMMANDS[name].help and cli.err == ""
    cli(f"{line} --hlep", code=2)
    assert cli.err == "error: unknown option --hlep; did you mean --help?\n"


@pytest.mark.parametrize(
    "given, meant",
    [
        ("-train c -output v -size 50", "c --output v --dim 50 --preset word2vec"),
        ("-train c -output v --preset likelihood", "c --output v --preset likelihood"),
        ("c -window 3 -sample 0 -iter 2 -alpha .1", "c --window 3 --sample 0 --epochs 2 --lr .1"),
        ("c -cbow 0 -binary 1 -debug 0", "c --model skipgram --format binary --quiet"),
        ("c -cbow 1 -binary 0 -debug 2", "c --model cbow --format text"),
        ("c -hs 1 -negative 0", "c --objective hs"),
        ("c -hs 0 -negative 5", "c --negative 5"),
        ("c --min_count 1 -threads 2 -o v", "c --min-count 1 --threads 2 -o v"),
        ("c -read-vocab b", "c --read-vocab b"),
        ("c --unk --dim 3 -- -d", "c --unk <unk> --dim 3 -- -d"),
    ],
)
def test_other_spellings_mean_our_options(given, meant):
    command = ALL_COMMANDS["dcme-w2v train"]

    def parsed(line):
        settings = program.context_settings
        ctx = command.make_context("train", line.split(), **settings)
        with ctx:
            return ctx.params, {*given_options()} - {"corpus"}

    assert parsed(given) == parsed(meant)


def test_the_demo_prints_neighbors_of_words_of_a_text(here, cli):
    Path("c.txt").write_text("bitter coffee strong morning evening\n" * 99)
    out = cli("demo c.txt")
    assert len(re.findall(r"^ +\w+: (\w+ -?[01]\.\d\d(, |\n)){3,5}", out, re.MULTILINE)) == 5
    assert [path.name for path in here.iterdir()] == ["c.txt"]


def test_doctor_prints_what_a_report_needs(cli, monkeypatch):
    assert __version__ in cli("--version")
    monkeypatch.setenv("DCME_W2V_KERNELS", "scalar")
    monkeypatch.setitem(doctor.OPTIONAL, "no_such_package", "nothing")
    lines = cli("doctor").splitlines()
    assert lines[0] == f"dcme-w2v: {__version__}" and "chosen kernels: scalar" in lines
    assert lines[-1].startswith(
        "no_such_package: not installed: pip install no_such_package (nothing)"
    )
    project = (Path(__file__).parents[2] / "pyproject.toml").read_text(encoding="utf-8")
    extras = re.search(r"^zst = .*?(?=^bench)", project, re.MULTILINE | re.DOTALL)[0]
    assert set(re.findall(r'"([\w-]+)>', extras)) <= set(doctor.OPTIONAL)
    assert cli.json("doctor")["packages"]["no_such_package"] is None


@pytest.mark.parametrize(
    "error, code, line",
    [
        (ResourceError("disk full"), 1, "error: disk full\n"),
        (FileNotFoundError(2, "No such file or directory", "x.txt"), 1,
         "error: x.txt: there is no such file or folder; check the name and the order of the "
         "arguments\n"),
        (IsADirectoryError(21, "Is a directory", "d"), 1, "error: d is a folder; use a file\n"),
        (MemoryError(), 1, "error: out of memory; lower --dim or --features, or use less text\n"),
        (ImportError("x.so: failed to map segment from shared object"), 1,
         "error: x.so: failed to map segment from shared object; lower --threads, or raise the "
         "limits of memory and threads (ulimit)\n"),
        (RuntimeError("can't start new thread"), 1,
         "error: can't start new thread; lower --threads, or raise the limits of memory and "
         "threads (ulimit)\n"),
        (KeyboardInterrupt(), 130, "error: interrupted\n"),
        (ValueError("odd\nthing"), 1,
         "error: ValueError: odd thing; this is a bug; please report what --debug prints\n"),
    ],
)  # fmt: skip
def test_an_error_is_one_line_and_a_traceback_only_with_debug(cli, monkeypatch, error, code, line):
    @click.command()
    def check():
        raise error

    monkeypatch.setattr(program, "get_command", lambda context, name: check)
    cli("check", code=code)
    assert cli.err.lstrip("\n") == line
    cli("--debug check", code=code)
    assert cli.err.lstrip("\n").startswith("Traceback") and cli.err.endswith(line)


ERRORS = [
    ("train c.txt --objective hs --output-vectors sum -o n.bin", "supported with --objective hs"),
    ("train c.txt --objective hs --output-tables t -o new.bin",
     "is not supported with --objective hs"),
    ("train c.txt --subwords 3-6 --output-vectors sum -o new.bin", "with --output-vectors sum"),
    ("train c.txt --word-order --model skipgram -o new.bin",
     "--word-order is not supported with --model skipgram"),
    ("train c.txt --word-order --objective hs -o new.bin",
     "--word-order is not supported with --objective hs"),
    ("classify train d.txt --tune --cluster local:2 -o new.npz",
     "--cluster is not supported with --tune"),
    ("classify train d.txt --quiet --loss hinge --solver lbfgs -o new.npz",
     "is not supported with --solver lbfgs"),
    ("train c.txt --cluster local:0 --objective hs -o new.bin",
     "hs is not supported with --cluster"),
    ("train c.txt --objective hs --holdout 0.1 -o new.bin", "is not supported with --objective hs"),
    ("train c.txt --subwords 3-6 --objective nce -o new.bin", "not supported with --objective nce"),
    ("train c.txt --subwords 6-3 -o new.bin", "from 1 to 99 characters"),
    ("train c.txt --word-order --cluster local:0 -o new.bin",
     "--word-order is not supported with --cluster"),
    ("classify train d.txt --quiet --loss hinge --objective nce -o new.npz",
     "is not supported with --objective nce"),
    ("classify train d.txt --solver lbfgs --checkpoint x -o new.npz",
     "is not supported with --solver lbfgs"),
    ("classify train d.txt --tune --checkpoint x -o new.npz",
     "--checkpoint is not supported with --tune"),
    ("classify train d.txt --objective tree --tune -o new.npz",
     "is not supported with label trees"),
    ("classify train d.txt --cluster local:x -o new.npz", "local:N"),
    ("classify train d.txt --shards 2 -o new.npz", "--cluster"),
    ("classify train d.txt --cluster local:0 --distribute gradient -o new.npz", "--solver"),
    ("classify train d.txt --cluster local:0 --checkpoint x -o new.npz", "--checkpoint"),
    ("train c.txt --cluster local:0 --objective dcme -o new.bin",
     "dcme is not supported with --cluster"),
    ("train c.txt --cluster local:0 --rounds 3 -o new.bin",
     "--rounds 3 must be a multiple or a divisor of --epochs"),
    ("train c.txt --cluster local:0 --holdout 0.1 -o new.bin", "is not supported with --cluster"),
    ("latent fit d.txt --choose 2,500 --holdout 0.2 --quiet -o new.npz",
     "--choose 2,500: every number must be at most 17"),
    ("plot r.npz --labels c.txt -o new.png", "has more than 20 lines"),
    ("transform k d.txt -o new.npz", "use a model from scdv fit"),
    ("classify predict k nosuch.tsv", "error: nosuch.tsv: there is no such file or folder"),
    ("neighbors king v.txt", "king: there is no such file or folder; check the name"),
    ("neighbors http://a/v.bin king", "only text can be read from URLs"),
    ("neighbors v.txt king -k 0", "error: -k 0 must be at least 1"),
    ("neighbors k king", "k is a 'classifier' file; use a 'vectors' or"),
    ("vocab --merge c.txt --output x", "must be a word, a space and a count"),
    ("phrases c.txt --output x.parquet", "x.parquet: text cannot be written to a .parquet"),
    ("transform m d.txt --output x.svm --labels x.npz.gz", "text cannot be written to a .npz"),
    ("classify train d.txt --output x --holdout 0.999", "the 0 documents that remain"),
    ("transform m", "no DOCS is given; see dcme-w2v transform --help"),
    ("latent fit c.txt", "no --output is given; see dcme-w2v latent fit --help"),
    ("train c.txt --output s3://a/b.bin", "s3://a/b.bin: writing to a URL is not supported"),
    ("classify train d.txt --output ~/m", "write $HOME for ~"),
    ("train c.txt --output . --format binary", "is a folder; use a file"),
    ("train c.txt --output o.npy", "vectors cannot be written to a .npy"),
    ("eval analogies v.txt d.txt", "d.txt contains no questions; write four words per line"),
    ("eval similarity v.txt c.txt", "c.txt contains no word pairs; write each line"),
    ("train -cbow 0 --model cbow", "-cbow 0 and --model cbow contradict"),
    ("train -cbow 2", "-cbow must be 0 or 1, not '2'"),
    ("train -cbow", "requires an argument"),
    ("train -outputs o", "unknown option -outputs; did you mean --output?"),
    ("train --output v", "no corpus was given; pass files or folders, or - for standard input"),
    ("train c.txt", "no --output was given; choose a file for the vectors, or use --dry-run"),
    ("train c.txt -output v -binary 1 --format text",
     "-binary 1 and --format text contradict each other; use only one"),
    ("train c.txt --output v --output-tables v", "--output-tables v is the same file"),
    ("train c.txt --output v -window 0", "--window 0 must be at least 1"),
    ("demo none", "none: there is no such file or folder"),
    ("train c.txt -save-vocab v", "unknown option -save-vocab; use the command vocab"),
    ("train c.txt --output o --objective hs --format fasttext",
     "--format fasttext is not supported with --objective hs; use --objective ns, nce or dcme"),
    ("trian", "unknown command trian; did you mean train?"),
    ("scdv search index", "unknown command search; use dcme-w2v search"),
    ("eval train c.txt", "unknown command train; use dcme-w2v train"),
    ("scdv train c.txt", "unknown command train; use fit"),
    ("print-sentence-vectors m", "use encode"),
    ("neighbors v.txt ''", "all given words are empty"),
    ("info ''", "FILE: the path is empty; choose a file"),
    ("classify test k d.txt --labels ''", "--labels: the path is empty"),
    ("train c.txt --output o --read-vocab ''", "--read-vocab: the path is empty"),
    ("train c.txt --output o --objective ns --prior 1",
     "--prior 1 is not supported with --objective ns; use --objective nce or dcme"),
    ("train c.txt --output o --preset vektors", "must be word2vec, similarity"),
    ("train c.txt --output o --init-vocab old", "--init-vocab old requires --init"),
    ("train c.txt --output o --init v.txt --init-vocab old --read-vocab voc",
     "--init-vocab old is not supported with --read-vocab; omit one"),
    ("train c.txt --output o --init two.txt --init-vocab old --dim 2 --quiet",
     "words of --init; use other vec"),
    ("train c.txt --output o --init two.txt --init-vocab union --dim 2 --quiet --min-count 9999",
     "words of --init, or occurs at least 9999 times; lower --min-count\n"),
    ("train c.txt --output o --read-vocab other.voc --min-count 1 --quiet",
     "words of the vocabulary; use another --read-vocab\n"),
    ("eval likelihood ta --analogies asked", "check the case and the language of the questions\n"),
    ("train c.txt --output o --unk two\u00a0words", "must be one word without whitespace or NUL"),
    ("train c.txt --output o --unk --subwords 3-6", "--unk <unk> is not supported with"),
    ("train --unk c.txt --output o", "because c.txt was read as the value of --unk"),
    ("classes two.txt --classes 3 --output o", "--classes 3: there are only 2 words; use fewer"),
    ("classes nan.txt --classes 1 --output o", "NaN"),
    ("convert v.txt o.tsv --to kv", "load_word2vec_format(BIN, binary=True).save(KV)"),
    ("convert v.txt o.kv", "o.kv: .kv files cannot be written; use another suffix"),
    ("convert v.txt o.txt --reduce 7", "--reduce 7: the vectors have only 4 dimensions"),
    ("convert v.txt o.txt --postprocess damp", "must be none or center, not 'damp'"),
    ("convert v.txt o.jsonl --no-header", "--no-header is supported only for text"),
    ("convert v.txt o.parquet --quantize int8", "--quantize int8 requires --to"),
    ("train c.txt --output o --init ck --quiet", "is a folder without static embeddings"),
    ("convert - o.txt --invalid skip", "rows cannot be skipped in -, which is a stream"),
    ("convert plain o.txt --invalid skip", "neither a header"),
    ("plot ended --output o.png", "no loss is recorded for any epoch; finish"),
    ("plot log --output o.png --field x", "field of these logs; use one of seconds, loss"),
    ("plot two.txt --output o.png --words a", "there are 1 points, but a plot requires at least 3"),
    ("plot v.txt --output o.png --words a,b", "'a,b' is not among the 9 words"),
    ("plot v.txt --output o.png --field loss", "is not supported for plots of word vectors; omit"),
    ("explore v.txt v.txt v.txt --method pca -o o.html", "one or two files are required, not 3"),
    ("explore v.txt --labels short --method pca -o o.html", "has 2 lines, but there are 9 rows"),
    ("explore v.txt --labels lv.txt --color 2 --method pca -o o.html", "--color 2; lower --color"),
    ("explore v.txt --labels bytes --method pca -o o.html", "bytes:1 is not UTF-8"),
    ("explore two.txt --method pca -o o.html", "has 2 rows, but a map requires at least 3"),
    ("explore v.txt --output o.png", "use a name ending in .html"),
    ("classify train one --output o --quiet", "all documents have the label 'x'"),
    ("classify train plain --output o --quiet", "no document has a label"),
    ("classify train wordless --output o --quiet", "no words"),
    ("classify train d.txt --output o --patience 2 --quiet", "--holdout"),
    ("classify train d.txt --output o --labels x --quiet", "--labels x"),
    ("classify train d.txt --output o --subwords 4-1", "4-1 must be the minimum and maximum"),
    ("classify predict k d.txt --output o.xlsx", "tables: .csv, .jsonl or .parquet"),
    ("classify explain k zebra", "not a class of this model; choose a class such as x"),
    ("search k --query aa", "k is a 'classifier' file; use a 'search' file"),
    ("latent fit one --output o --quiet", "all documents have the label 'x'"),
    ("latent fit plain --output o --quiet",
     "write each line as LABEL<TAB>TEXT, or --unsupervised"),
    ("latent fit d.txt --output o --choose 2,3", "--choose requires held-out documents"),
    ("latent fit d.txt --output o --choose 2 --latent 2 --holdout 0.2", "with --latent"),
    ("latent fit d.txt --output o --unsupervised --latent 2 --holdout "
        "0.2", "which requires labels"),
    ("latent fit d.txt --output k", "is not a latent model"),
    ("latent show k", "is a 'classifier' file; use a 'latent' file"),
    ("transform z r.npz --output -", "contains vectors, but the model"),
    ("scdv fit d.txt --vectors v.txt --output o --clusters 500 --quiet", "500 must be at most"),
    ("fuse fit d.txt --output o --quiet", "no unlabeled documents; pass some with --unlabeled, or"),
    ("fuse fit plain --unlabeled plain --output o --quiet", "no document has a label"),
    ("fuse fit one --unlabeled plain --output o --quiet", "all documents have the label 'x'"),
    ("fuse fit d.txt --unlabeled plain -o o --subwords none --quiet", "contains any of the"),
    ("fuse fit d.txt --unlabeled w.npz --output o --quiet", "text and others contain vectors"),
    ("fuse fit w.npz --labels l.txt --unlabeled r.npz --output o --quiet", "w.npz: 3, r.npz: "),
    ("classify train d.txt --objective tree --checkpoint o -o "
        "o2", "not supported with label trees"),
    ("classify train d.txt --objective tree --resume kc -o o2", "not supported with label trees"),
    ("classify train d.txt --objective tree --cluster local:1 -o "
        "o2", "not supported with label trees"),
    ("classify train d.txt --objective tree --max-bytes 9999 -o "
        "o2", "not supported with label trees"),
    ("classify shrink k --output o --max-bytes 90", "the smallest possible model requires"),
    ("classify shrink k --output o --max-bytes 9000 --keep 3", "omit --keep"),
    ("classify shrink k --output o --holdout -", "because the held-out documents are read twice"),
    ("info .", "a folder without checkpoints or static embeddings"),
    ("info nowhere", "there is no such file"),
    ("info -", "info cannot read; save the data to a file"),
    ("eval likelihood v.txt h.txt", "requires its context vectors; train with --output-tables"),
    ("eval likelihood ta", "pass a corpus"),
    ("predict-word -", "standard input"),
    ("predict-word bytes a _", "bytes"),
    ("neighbors v.txt nobody", "no vector for nobody; check spelling and case"),
    ("neighbors -", "standard input cannot supply both VECTORS and words"),
    ("phrases c.txt --output o --connectors nowhere", "No such file"),
    ("phrases c.txt --output o --connectors empty", "the connector list is empty; use words"),
    ("phrases c.txt --output o --connectors bytes", "byte 0 is not UTF-8; use a text file that"),
    ("phrases c.txt --output o --connectors nul", "contains NUL bytes"),
    ("phrases c.txt --output o --connectors many", "has 255 words, but at most 254 words are"),
    ("phrases c.txt --output o --read-table of", "both as a connector and as a word in a pair"),
    ("phrases c.txt --output - --json", ""),
    ("phrases c.txt --output o --memory nan", "--memory nan"),
    ("search none.txt --query a", "none.txt"),
    ("search empty --query a", "empty: no documents"),
    ("scdv fit empty --vectors v.txt --output o --quiet", "empty: no documents were found"),
    ("search -", "standard input cannot supply both DOCS and queries"),
    ("search - --query -", "standard input cannot supply both DOCS and queries"),
    ("search c.txt --threshold 0.5", "--threshold has no effect without --duplicates"),
    ("search c.txt --duplicates --query a", "omit --query"),
    ("search c.txt --duplicates --threshold 2", "--threshold"),
    ("search c.txt --duplicates -k 3", "-k has no effect without queries"),
    ("search c.txt --output o --json", "--json has no effect without queries"),
    ("search c.txt --query a -k 0", "-k"),
    ("search nul --query a", "is a NUL byte"),
    ("compare two.txt", "two vector files are required, not 1"),
    ("compare two.txt two.txt two.txt", "two vector files are required, not 3"),
    ("compare two.txt v.txt", "different numbers of dimensions (2 and 4)"),
    ("compare two.txt two.txt", "0 words occur at least 100 times in both texts"),
    ("compare two.txt other.txt --min-count 1", "0 words occur at least 1 times in both texts"),
    ("compare two.txt missing.txt", "missing.txt"),
    ("compare two.txt --with", "requires an argument"),
    ("classify predict k d.txt --keep id", "--keep id requires --text-column"),
    ("classify predict k log --text-column event --keep y",
     "has no column 'y'; choose one of its columns: event, seconds"),
    ("classify predict k d.txt -o o.csv --json", "--json: o.csv cannot contain JSON"),
    ("classify predict k d.txt -o o.parquet.gz", "omit the suffix .gz"),
    ("classify predict k d.txt -o o.npz", "o.npz: text cannot be written to a .npz"),
    ("classify predict k d.txt --min-probability 1.5",
     "error: --min-probability 1.5 must be a number from 0 to 1\n"),
    ("classify test k d.txt --min-probability 1.5",
     "error: --min-probability 1.5 must be a number from 0 to 1\n"),
    ("classify test k sts.tsv", "no document has any of the model's labels, such as"),
    ("classify explain k", "neither a label nor a text was given"),
    ("classify explain k xx", "did you mean x?"),
    ("classify explain kr --text saw", "the model does not classify texts"),
    ("classify train d.txt -o o --quiet --class-weight a=2", "no document has the label 'a'"),
    ("classify train d.txt -o o --quiet --class-weight x=0", "must be positive"),
    ("classify train d.txt -o o --quiet --class-weight x", "x is not a label with a weight"),
    ("classify train d.txt -o o --quiet --class-weight =2", "=2 is not a label with a weight"),
    ("classify train d.txt -o o --quiet --class-weight x=-1", "use a positive number"),
    ("classify train d.txt -o o --quiet --class-weight x=nan", "use a positive number"),
    ("classify train d.txt -o o --quiet --class-weight x=1e7",
     "x' has the weight 10000000.0; use a positive number, at most 1,000,000"),
    ("classify train d.txt -o o --quiet --class-weight balanced --class-weight x=2",
     "balanced is not a label with a weight"),
    ("classify train log --text-column event --label-column event -o o --quiet",
     "log: the column 'event' is selected both as text and as label; choose two different columns"),
    ("latent fit half.tsv -o o --quiet", "a label is text or an integer"),
    ("fuse fit half.tsv --unlabeled half.tsv -o o --quiet", "a label is text or an integer"),
    ("classify train d.txt --preset x -o o", "--preset must be dcme-2017, not 'x'"),
    ("scdv fit d.txt --vectors v.txt --preset x -o o", "--preset must be paper, not 'x'"),
    ("fuse fit d.txt --unlabeled d2.txt --preset x -o o", "--preset must be paper, not 'x'"),
    ("train c.txt -o v --checkpoint x --seeds 2", "--seeds is not supported with --checkpoint"),
    ("classify train d.txt -o o --resume kc --seeds 2", "--seeds is not supported with --resume"),
    ("train c.txt -o v --dry-run --seeds 2", "--seeds is not supported with --dry-run"),
    ("train c.txt -o - --seeds 2", "--seeds: several runs cannot share standard"),
    ("classify train - -o o --seeds 2", "--seeds: several runs cannot share standard"),
    ("train c-1.txt -o c.txt --quiet --seeds 2", "c-1.txt"),
    ("eval similarity v.bin p.txt --seeds 2", "v-1.bin: there is no such file"),
    ("train c.txt -o v --table csv --json", "--table is not supported with --json; omit one"),
    ("eval sts v.txt sts.tsv --table latex --json", "--table is not supported with --json"),
    ("train c.txt -o v --table csv --dry-run", "--table is not supported with --dry-run"),
    ("classify test k d.txt --table csv --per-class", "--table is not supported with --per-"),
    ("classify test k d.txt --seeds 2 --calibration", "--seeds is not supported with --cali"),
    ("train c.txt --init v.txt -o v.txt", "is the same file as --init"),
    ("train c.txt --read-vocab voc -o voc", "is the same file as --read-vocab"),
    ("train c.txt --holdout asked -o o --quiet", "error: asked: no token is in the vocabulary of "),
    ("eval likelihood ta asked", "error: asked: no token is in the vocabulary of "),
    ("classify train d.txt -o o --quiet --solver dual --loss softmax", "dual requires"),
    ("classify train d.txt -o o --quiet --solver dual --loss hinge --l2 0", "requires"),
    ("latent fit c.txt --unsupervised -o o --quiet", "--latent is required with --unsupervised"),
    ("latent fit c.txt --unsupervised --latent 2 --init-method labels -o o --quiet",
     "--init-method labels requires labels"),
    ("latent fit d.txt --unsupervised --latent 99 -o o --quiet",
     "--latent 99 must be at most 20, the number of documents"),
    ("encode v.txt c.txt -o o.npy --dim 5", "--dim 5"),
    ("encode v.txt none -o o.npy", "none: there is no such file or folder; check the path"),
    ("encode v.txt c.txt -o o.npy.gz", "o.npy.gz: .npy files cannot be written compressed; use a"),
    ("encode v.txt c.txt -o o.npz.xz", "o.npz.xz: .npz files cannot be written compressed; use a"),
    ("encode v.txt c.txt -o o.npy.bz2", "o.npy.bz2: .npy files cannot be written compressed"),
    ("encode v.txt c.txt -o o", ".npy, .npz or .tsv"),
    ("encode v.txt c.txt -o o.bin", ".npy, .npz or .tsv"),
    ("encode i.safetensors bytes -o o.npy", "bytes: byte 0 is not UTF-8"),
    ("encode i.safetensors nul -o o.npy", "nul: byte 2 is a NUL byte"),
    ("neighbors v.txt +aa\u00a0-nobody", "no vector for nobody"),
    ("neighbors v.txt aa -bb", "error: unknown option -bb"),
    ("scdv topics m --word none", "error: none is not among the model's "),
    ("convert v.txt o --to sentence-transformers --pooling usif", "mean"),
    ("convert v.txt o.txt --pooling mean", "--to"),
    *((f"train c.txt -o o --cluster {address}", "HOST:PORT")
      for address in (
        "local", "local:", "local:-1", "local:99999", "http://x:1", "nowhere.json", "tcp:",
        "tcp://localhost", "5.json", ".",
    )),
    ("classify train d.txt --init k -o o --ngrams 2",
     "--ngrams 2 cannot be changed, because --init k was trained with 1; omit --ngrams"),
    ("classify train d.txt --init k -o o --hashing 1024",
     "--hashing 1024 cannot be changed, because --init k was trained without it; omit --hashing"),
    ("classify train d.txt --init k -o o --loss softmax",
     "--loss softmax cannot be changed, because --init k was trained with hinge; omit"),
    ("classify train d.txt --init k -o o --checkpoint c",
     "--checkpoint is not supported with --init"),
    ("classify train d.txt --init k -o o --resume c", "--resume "),
    ("classify train d.txt --init k -o o --tune 5", "--tune is not supported with --init"),
    ("train c.txt -o o.kv", "o.kv: .kv files cannot be written"),
    ("train c.txt -o o.parquet.gz", "o.parquet.gz: parquet files cannot be written compressed"),
    ("train c.txt -o o.safetensors.gz", "a model cannot be written to a pipe or to a compressed"),
    ("train c.txt -o o.npz", "o.npz: vectors cannot be written to a .npz"),
    ("train c.txt -o o.pdf", "o.pdf: vectors cannot be written to a .pdf"),
    *((f"{line} file:///tmp/a%20b", " file:///tmp/a%20b is a URL; use the path /tmp/a b")
      for line in (
        "vocab c.txt -o", "classify train d.txt --quiet -o", "train c.txt -o v.bin --checkpoint",
        "train c.txt --quiet -o v.bin --log-json", "search c.txt --quiet -o", "convert v.txt",
    )),
]  # fmt: skip


@pytest.mark.parametrize("line, message", ERRORS)
def test_wrong_usage_is_one_line_and_writes_nothing(line, message, made, cli, monkeypatch):
    """`''` is an empty variable of the shell."""
    monkeypatch.chdir(made)
    before = [*os.walk(made)]
    words = [word.replace("\u00a0", " ").replace("''", "") for word in line.split(" ")]
    assert message in cli.error(words[0], *words[1:])
    assert [*os.walk(made)] == before


@pytest.mark.parametrize("command", [
    "train c --output v.bin", "vocab c --output v", "encode v.txt c --output e.npz",
    "scdv fit c --vectors v.txt --output m", "train c --output v.bin --cluster local:1 --shards 1",
])  # fmt: skip
def test_no_folder_for_temporary_files_is_named(cli, monkeypatch, command):
    """As in a read-only container."""
    Path("c").write_text("a b c a b c a b\n" * 30)
    Path("v.txt").write_text("2 2\na 1 2\nb 2 1\n")
    monkeypatch.setattr(tempfile, "tempdir", None)
    missing = str(Path("missing").absolute())
    monkeypatch.setattr(tempfile, "_candidate_tempdir_list", lambda: [missing])
    monkeypatch.setenv("TMPDIR", missing)
    if cli.run(command):
        assert cli.err.endswith("\n") and cli.err.splitlines()[-1].startswith(f"error: {missing}: ")
        assert "TMPDIR" in cli.err
    else:
        assert command.startswith("vocab")  # writes no temporary file
