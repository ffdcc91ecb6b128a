"""The table of known_faults_test.py: programs that once showed a fault, how each is run, and what is right."""
import dataclasses
import re
import struct
import typing

SOON_S = 5  # what is told at once, on a loaded machine
SILENCE_S = 8  # what is told after the limit of silence, which is 4 s
SECONDS_MS = 5000


@dataclasses.dataclass(frozen=True)
class Outcome:
    status: typing.Union[int, str]  # or "late"
    said: str
    seconds: float


@dataclasses.dataclass(frozen=True)
class Case:
    """`command` is a line of bash in `folder` of the programs, with $CASES, all of them; $TMPDIR, empty; $PYTHON."""
    name: str
    right: str  # in words
    folder: str
    programs: tuple  # to be built: folder/name
    command: str
    wrong: typing.Callable  # Outcome → why it is wrong, or nothing
    settings: dict = dataclasses.field(default_factory=dict)
    limit_s: int = 90
    together: int = 2  # at a time: more where it waits rather than works
    root: bool = False
    python: bool = False  # with numpy


def ends_well(outcome):
    """The harness of the C programs counts what was wrong, and prints ok at the end."""
    if outcome.status != 0:
        return f"exit status {outcome.status}"
    return "" if re.search(r"\bok$", outcome.said.strip()) and "FAULT" not in outcome.said else "it does not end with ok"


def each_level_well(outcome):
    ends = re.findall(r"^(\w+): rank 0: ok; rank 1: ok$", outcome.said, re.M)
    return "" if ends == ["WARN", "INFO", "TRACE"] else f"both ranks end well at {ends} alone"


def half(value):
    return struct.unpack("e", struct.pack("e", value))[0]


def lost_one_by_one(value, ranks):
    """What an average of equal 16-bit floats loses where each is divided first, and the quotients added in turn."""
    total = 0.0
    for _ in range(ranks):
        total = half(total + half(value / ranks))
    return abs(total - value)


def averages_hold(ranks):
    """60000 on all ranks. Sums on the way are rounded, so a ring may miss by as much as dividing first does."""
    def wrong(outcome):
        rows = re.findall(r"avg\(60000\) (\S+?)\.\.(\S+)  rs-avg (\S+?)\.\.(\S+)  sum", outcome.said)
        if len(rows) != 16 or re.search(r"FAULT:|SIGNAL", outcome.said):
            return f"{len(rows)} of 16 rows, or a failed call"
        allowed = lost_one_by_one(60000, ranks)
        off = [average for row in rows for average in map(float, row) if not abs(average - 60000) <= allowed]
        return f"averages {sorted(set(map(str, off)))}, not 60000 within {allowed:g}" if off else ""
    return wrong


def healthy_rank_told(outcome):
    known = [int(ms) for ms in re.findall(r"rank 1 knew after (\d+) ms", outcome.said)]
    reasons = re.findall(r"rank 1: start: .*rank 0 .*(?:eventfd|shared memory|ulimit -f)", outcome.said)
    if len(known) != 6 or max(known) > SECONDS_MS:
        return f"rank 1 knew after {known} ms"
    return "" if len(reasons) == 6 else f"rank 1 was told the reason {len(reasons)} times of 6"


def rights_dropped(outcome):
    """An error that names the cause would be right by the program's words; the library completes the calls."""
    ways = re.findall(r"^how (\d): ok", outcome.said, re.M)
    return "" if ways == list("123567") and "WRONG" not in outcome.said else f"right sums in ways {ways} of 1 2 3 5 6 7 alone"


def both_live(outcome):
    ended = re.search(r"rank 0 ended with (\S+) ;.* (\S+)\s*\Z", outcome.said, re.S)
    return "" if outcome.status == 0 and ended.groups() == ("0", "0") else "the ranks do not both end with 0"


def late_rank_told(reason):
    def wrong(outcome):
        seconds, code, why = re.search(r"rank 1 told after ([\d.]+) s: (\d+) (.*)", outcome.said).groups()
        if float(seconds) > SOON_S or code == "0":
            return f"rank 1 was told {code} after {seconds} s"
        return "" if re.search(reason, why) else "rank 1 is not told why"
    return wrong


def waiter_told(reason, within_s):
    def wrong(outcome):
        code, seconds, why = re.search(r"rank 0: \w+ returned (\d+), ([-\d.]+) s after the event: (.*)", outcome.said).groups()
        abort = re.search(r"abort \d+ took ([\d.]+) s", outcome.said)
        if float(seconds) > within_s or code == "0" or (abort and float(abort.group(1)) > within_s):
            return f"rank 0 was told {code} after {seconds} s{', ' + abort.group() if abort else ''}"
        return "" if re.search(reason, why) else "rank 0 is not told what happened"
    return wrong


def refused_in_words(outcome):
    """Every value as an output, on both ranks; the last of them ends the program."""
    refused = set(re.findall(r"^([01]) (.*?) InvalidArgumentError .*a value, and the call would write to a copy", outcome.said, re.M))
    values = ("np.float32(2)", "array.sum()", "array[0]", "broadcast to a scalar")
    missing = {(rank, value) for rank in "01" for value in values} - refused
    if missing or " returned " in outcome.said:
        return f"not refused: {sorted(missing)}"
    return "" if outcome.status == 1 and "FAULTY" not in outcome.said else "2000 values were not refused"


def values_arrive(words):
    return lambda outcome: "" if outcome.status == 0 and words in outcome.said else "values of others"


def python_ends(mode):
    """Both ranks say fine and end; an ordinary end says nothing else."""
    fine = 1 if mode == "ctrlc" else 2
    codes = "[1, 1]" if mode == "raise" else "[0, 0]"

    def wrong(outcome):
        if len(re.findall("^fine", outcome.said, re.M)) != fine or f"{mode} codes {codes} " not in outcome.said:
            return f"not {fine} times fine, or other codes than {codes}"
        if mode == "ctrlc":
            after_s = float(re.search(r"fine, ([\d.]+) s after", outcome.said).group(1))
            return "" if after_s < 2 and "Traceback" not in outcome.said else f"the interrupt of second 1 came at {after_s}"
        if mode != "raise" and "Traceback" in outcome.said:
            return "a traceback"
        # In these two the program has left a call that its peer waits in, which may be said.
        return "a warning at an ordinary end" if mode not in ("raise", "daemon") and " tutti " in outcome.said else ""
    return wrong


# Settings that name a file, and whether a start must refuse what is none. A start measures where it is to keep something.
MUST_REFUSE = ("TUTTI_CONF_FILE", "TUTTI_COMM_SECRET_FILE", "TUTTI_MACHINE_FILE", "TUTTI_PLAN_FILE", "TUTTI_TOPO_FILE",
               "TUTTI_TOPO_DUMP_FILE", "TUTTI_GRAPH_FILE", "TUTTI_GRAPH_DUMP_FILE", "TUTTI_JOB_DUMP_FILE")
MUST_LIVE = ("TUTTI_DEBUG_FILE", "TUTTI_CACHE_DIR", "TUTTI_IB_LIBRARY", "TUTTI_CUDA_LIBRARY", "TUTTI_CUDA_KERNELS")
ODD_FILE = f"""mkfifo "$TMPDIR/lonely" "$TMPDIR/held"; exec 9<>"$TMPDIR/held"
for setting in {' '.join(MUST_REFUSE + MUST_LIVE)}; do
  tune=off; if [ $setting = TUTTI_CACHE_DIR ]; then tune=; fi
  env TUTTI_TUNE=$tune TUTTI_RANK=0 TUTTI_NRANKS=1 TUTTI_JOB_ID=odd$$$setting $setting="$ODD" ./z_one >"$TMPDIR/one" 2>&1
  echo "$setting $?: $(tail -1 "$TMPDIR/one")"
done"""


def odd_file_noticed(outcome):
    for setting in MUST_REFUSE:
        if not re.search(rf"^{setting} 3: start: .*{setting}.*is not a regular file", outcome.said, re.M):
            return f"{setting} is not refused in words"
    for setting in MUST_LIVE:
        if not re.search(rf"^{setting} 0: ok$", outcome.said, re.M):
            return f"a start fails by {setting}"
    return ""


def odd_file(name, path):
    return Case(f"odd_file_{name}", "a start reads it, or refuses it in words, and never waits for it", "c", ("c/z_one",),
                f'ODD="{path}"\n{ODD_FILE}', odd_file_noticed)


def two_ranks(first):
    """z_one as two ranks, the first of them under some restriction. Output goes through a pipe: `ulimit -f` is for files too."""
    return (f"export TUTTI_NRANKS=2 TUTTI_JOB_ID=two$$ TUTTI_INIT_TIMEOUT_MS=30000; "
            f"for rank in 0 1; do (if [ $rank = 0 ]; then {first}; fi; "
            f"TUTTI_RANK=$rank $limited ./z_one; echo \"status $?\") 2>&1 | sed \"s/^/rank $rank: /\" & done; wait")


def both_complete(outcome):
    right = outcome.said.count(": ok") == 2 and outcome.said.count(": status 0") == 2
    return "" if right else "the ranks do not both end well"


def both_hear_of(words):
    def wrong(outcome):
        told = re.findall(rf"^rank ([01]): start: .*{words}", outcome.said, re.M)
        right = sorted(told) == ["0", "1"] and outcome.said.count(": status 3") == 2 and outcome.seconds < SOON_S
        return "" if right else f"ranks {told} were told, in {outcome.seconds:.1f} s"
    return wrong


def restricted(name, right, first, wrong):
    return Case(name, right, "c", ("c/z_one", "c/seccomp_deny"), two_ranks(first), wrong)


def harness(name, right, program, arguments="", wrong=ends_well, **more):
    """A program of the C harness, which starts its ranks itself."""
    return Case(name, right, "c", (f"c/{program}",), f"exec ./{program} {arguments}", wrong, **more)


def by(transport, **more):
    return {"TUTTI_TRANSPORT": transport, **more}


def python_case(name, right, command, wrong, **more):
    """Tracebacks come last, for two ranks write theirs letter by letter."""
    line = f'"$PYTHON" {command} 2>"$TMPDIR/errors"; status=$?; cat "$TMPDIR/errors"; exit $status'
    return Case(name, right, "python", (), line, wrong, python=True, **more)


LOST, ABORTED = r"rank 1/2 .*(?:lost|closed)", r"aborted"
EVENTS = ("killed", LOST, SOON_S), ("stopped", LOST, SILENCE_S), ("aborts", r"rank 1/2 .*(?:aborted|closed|lost)", SOON_S), ("aborts_itself", ABORTED, SOON_S)
GONE = ("before", r"nobody listens"), ("while_waiting", r"made the id .*was lost"), ("refused_and_lives", r"TUTTI_NCHANNELS|nobody listens"), (
    "refused_and_left", r"TUTTI_NCHANNELS|nobody listens")


LATE_CALLS = 13  # of late.c
LATE_ALL = f"""for call in $(seq 0 {LATE_CALLS - 1}); do for rank in 0 1 2; do
  TUTTI_JOB_ID=late$$$call TUTTI_NRANKS=3 TUTTI_RANK=$rank ./late $call $BYTES 0 2>/dev/null | sed "s/^/call $call: /" &
done; done; wait"""


def limits_held(outcome):
    """Rank 0 may wait for one second; the last rank comes after three. Whoever fails has rank 0's code, 8 (timeout)."""
    first = re.findall(r"^call (\d+): r0 call=(\d+) dt=([\d.]+) first", outcome.said, re.M)
    if len(first) != LATE_CALLS:
        return f"rank 0 ended {len(first)} of {LATE_CALLS} calls"
    late = [f"call {call} succeeded after {seconds} s" for call, code, seconds in first if code == "0" and float(seconds) > 1.5]
    late += [f"call {call} failed with {code}" for call, code, _ in first if code not in ("0", "8")]
    others = re.findall(r"^call (\d+): r[12] call=(\d+) .* bad=(\d+)", outcome.said, re.M)
    late += [f"call {call}: a peer has {code}" for call, code, _ in others if code not in ("0", "8")]
    late += [f"call {call}: a peer succeeded with {bad} wrong numbers" for call, _, bad in others if bad != "0"]
    return "; ".join(late)


def port_is_held(outcome):
    told = re.search(r"STARTERR \d+ \d+ dt=([\d.]+) \|.*another (?:program|process)", outcome.said)
    return "" if told and "not tried yet" not in outcome.said else "nobody is told that another program holds the port"


def created_groups():
    """A rank waits for another in the start of a part, by memory and by sockets."""
    for transport in ("auto", "socket"):
        for call in ("group", "split"):
            for how, (event, reason, within_s) in enumerate(EVENTS):
                yield Case(f"cgroup_{call}_{event}_{transport}", "the rank that waits is told, soon and what", "faults",
                           ("faults/cgroup_kill",), f"exec ./cgroup_kill {how} {'split' if call == 'split' else ''}",
                           waiter_told(reason, within_s), by(transport, TUTTI_INIT_TIMEOUT_MS="30000"), together=6)


CASES = [
    *(harness(f"b01b_warn_into_data_{name}", "no log line becomes data", "b01b_warn_into_data", "2", settings=settings, together=5)
      for name, settings in (("late_socket", by("socket", LATE="1", BIG="1")), ("early_socket", by("socket")), ("auto", by("auto")))),
    Case("b01e_closed_stderr_socket", "ranks without stderr end well at any log level", "c", ("c/z_one",), "exec bash ./b01e_minimal.sh",
         each_level_well),
    Case("b01f_closed_stderr_auto", "ranks without stderr end well at any log level", "c", ("c/z_one",), "exec bash ./b01f_auto.sh",
         each_level_well),
    *(harness(f"a02_half_average_{transport}_{ranks}", "averages of 16-bit floats are finite and near", "a02_half_overflow", f"{ranks}",
              averages_hold(ranks), settings=by(transport))
      for transport, ranks in (("socket", 4), ("auto", 8), ("cma", 8), ("mapped", 8), ("slots", 8), ("auto", 16))),
    *(harness(f"a02b_fp8_average_{transport}", "averages of 8-bit floats are the same at every size", "a02b_fp8_avg", "4",
              settings=by(transport)) for transport in ("auto", "socket")),
    python_case("p12_scalar", "a value as output is refused in words", "p12_scalar.py", refused_in_words),
    python_case("p14b_scalar_group", "values in a group, and on a stream, are those given", "p14b_scalar_group.py",
                values_arrive("ok")),
    python_case("p14c_isend_scalar", "values sent are those given", "p14c_isend_scalar.py",
                values_arrive("scalars wrong: 0 of 100, arrays wrong: 0 of 4")),
    *(python_case(f"p14_{mode}", "Python ends as it should, and tutti says nothing of it", f"p14.py {mode}", python_ends(mode), together=4)
      for mode in ("exit", "raise", "daemon", "ctrlc", "fork", "mp", "gc", "del", "sub", "atexit")),
    *(harness(f"b16_last_call_then_exit_{transport}", "the last call succeeds on all ranks", "b16_last_call_then_exit", "1 3",
              settings=by(transport)) for transport in ("auto", "cma", "mapped", "slots", "socket")),
    Case("b07_rank0_fails_early", "the healthy rank hears the reason", "c", ("c/z_one", "c/seccomp_deny"),
         "exec bash ./b07_rank0_fails_early.sh", healthy_rank_told, limit_s=240),
    *(Case(f"root_gone_{event}", "a rank that comes later is told, soon and why", "faults", ("faults/root_gone",),
           f"exec ./root_gone {how}", late_rank_told(reason), together=6) for how, (event, reason) in enumerate(GONE)),
    *(harness(f"b29_drop_rights_{transport}", "calls of ranks that gave up their rights are right", "b29_drop_rights",
              wrong=rights_dropped, settings=by(transport), limit_s=400, together=3, root=True)
      for transport in ("auto", "cma", "mapped", "socket")),
    *created_groups(),
    *(Case(f"late_{transport}_{size}", "no call waits for a late rank beyond its limit, and all have one code", "faults",
           ("faults/late",), LATE_ALL, limits_held, by(transport, BYTES=size)) for transport in ("auto", "socket")
      for size in ("400", "4000000")),
    Case("port_in_use", "both ranks hear that another program holds the port", "faults", ("faults/worker",),
         'cp worker "$TMPDIR"; export CASES_DIR="$TMPDIR"; mkdir "$TMPDIR/run"; exec bash ./port_in_use.sh', port_is_held, together=1),
    odd_file("lonely_fifo", "$TMPDIR/lonely"),
    odd_file("silent_fifo", "$TMPDIR/held"),
    odd_file("dev_zero", "/dev/zero"),
    *(harness(f"b09_signals_{transport}", "no signal reaches a thread of the library, also while it measures", "b09_signals",
              settings=by(transport, TUTTI_TUNE=""), together=1)  # its later starts are those of a job without an id
      for transport in ("auto", "socket")),
    Case("b34_broken_pipe", "a rank whose log has no reader lives", "c", ("c/z_one",), 'exec "$PYTHON" ./b34_broken_pipe.py', both_live,
         {"TUTTI_NRANKS": "2"}),
    restricted("seccomp_madvise", "memory that takes no advice is memory", "limited='./seccomp_deny 1 28'", both_complete),
    restricted("seccomp_affinity", "a machine that does not say its cores is used", "limited='./seccomp_deny 38 204'", both_complete),
    restricted("files_of_no_size", "both ranks hear of ulimit -f", "ulimit -f 0", both_hear_of("ulimit -f")),
    restricted("few_descriptors", "both ranks hear of ulimit -n", "ulimit -n 12", both_hear_of("ulimit -n")),
]
