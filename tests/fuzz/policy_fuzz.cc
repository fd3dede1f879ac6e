/* tests/fuzz/policy_fuzz.cc - any stream of ops, drains, outcomes and times: each verdict can be
 * obeyed (the Player of tests/policy judges it), the invariants hold after every step, memory stays
 * bounded, and the same stream gives the same verdicts again.
 * An input is limits (7 bytes), then a program; see step(). */
#include "tests/fuzz/fuzz.h"

#include "tests/policy/player.h"

#include <cctype>

namespace ag_fuzz
{
namespace
{

enum {
    MOST_OPS = 3000, // of an input,
    MANY_OPS = 2048  // not counting those that are made so many at a time
};

struct Met {
    uint64_t ops, replayed, builds, dropped, asides, turns, verdicts, forgotten, pruned;
};
Met met;

ag_policy_limits limits_of(Reader &in)
{
    const uint32_t most = 1 + in.byte() % 64;
    const uint32_t first = in.byte() % 9, min_segment = in.byte() % (most + 2),
                   min_graph = in.byte() % 6, min_seen = in.byte() % 5;
    const uint32_t nodes = in.byte(), pace = in.byte();
    return {.first_segment = first,
            .min_segment = min_segment,
            .max_segment = most,
            .min_graph = min_graph,
            .min_seen = min_seen,
            .max_nodes = nodes % 4 ? nodes : nodes * 8,
            .pace = pace % 2 ? AG_PACE_KINDS : ag_pace_kind(pace / 2 % AG_PACE_KINDS)};
}

/* One run of an input. */
class Run
{
  public:
    explicit Run(const Bytes &input) : in_(input), limits_(limits_of(in_)), player_(limits_)
    {
        player_.clock = [this] { return now_ += tick_; };
    }
    // `judged`: the invariants after every step; else only what the Player sees.
    void play(bool judged)
    {
        judged_ = judged;
        judge();
        while (!in_.empty() && ops_ < MOST_OPS && !testing::Test::HasFailure())
            step(in_.byte());
        player_.ExpectSound();
    }
    uint64_t verdicts() const // all of them, as one number
    {
        return hash_;
    }
    const Player &player() const
    {
        return player_;
    }
    uint64_t dropped = 0, forgotten = 0;
    bool full = false;

  private:
    void note(const ag_verdict &v)
    {
        for (const uint64_t x : {uint64_t(v.hold), uint64_t(v.cut), uint64_t(v.use),
                                 uint64_t(v.segment), uint64_t(v.graph)})
            hash_ = (hash_ ^ x) * 0x100000001b3u;
    }
    void judge()
    {
        if (!judged_)
            return;
        player_.ExpectSound();
        const ag_policy_view v = player_.Look();
        EXPECT_LE(v.nodes, std::max(limits_.max_nodes, 1u));
        EXPECT_LE(v.graphs, v.nodes);
        EXPECT_LE(v.replayed, v.held);
        EXPECT_LE(v.held, v.ops);
        EXPECT_LT(ag_policy_pace(player_.policy()), AG_PACE_KINDS);
        EXPECT_TRUE(!ag_policy_aside(player_.policy()) || v.depth == 0);
        full |= v.nodes + 1 >= limits_.max_nodes;
    }
    void op(uint32_t sig)
    {
        if (ops_++ >= MOST_OPS)
            return;
        if (content_)
            ag_policy_content(player_.policy(), content_);
        note(player_.Op(sig));
        judge();
    }
    void letter(uint32_t sig)
    {
        if (!in_word_)
            word_.clear();
        in_word_ = true;
        word_.push_back(sig);
        op(sig);
    }
    void again(unsigned times)
    {
        for (; times > 0; times--)
            for (const uint32_t sig : word_)
                op(sig);
    }
    // At length: the last word again and again, or a program that never repeats itself. Judged now
    // and then.
    void go_on(bool novel)
    {
        for (unsigned i = 0; i < MANY_OPS && (novel || !word_.empty()); i++) {
            note(player_.Op(novel ? 1000 + novel_++ : word_[i % word_.size()]));
            if (i % 64 == 0)
                judge();
        }
    }
    void drain(ag_drain_kind kind)
    {
        note(player_.Drain(kind));
    }
    static uint32_t any_of(const std::vector<uint32_t> &all, uint32_t which)
    {
        return all.empty() ? which : all[which % all.size()];
    }
    // The rest of the alphabet, but for drains.
    void happen(uint8_t what)
    {
        switch (what) {
        case '~':
            return player_.Spoil();
        case '+':
        case '-':
            return player_.FinishBuild(what == '+');
        case '?':
            player_.build_later = !player_.build_later;
            return;
        case '*':
            player_.build_works = !player_.build_works;
            return;
        case '#':
            dropped += !player_.GraphSegments().empty();
            return player_.Drop(any_of(player_.GraphSegments(), in_.byte()));
        case '/':
            return player_.Drop(any_of(player_.WaitingSegments(), in_.byte()));
        case '$':
            forgotten++;
            return player_.Forget();
        case '%':
            return player_.Unasked(in_.byte() * (1 + in_.byte() * 65537u), in_.byte() % 2);
        case '@':
            tick_ = uint64_t(1) << in_.byte() % 64;
            return;
        case '&':
            if (ag_policy_on_trial(player_.policy()))
                ag_policy_idle(player_.policy(), uint64_t(1) << in_.byte() % 64);
            return;
        case '^':
            return player_.Pass(1u << in_.byte() % 20);
        case ':':
        case ';':
            return go_on(what == ':');
        case '=':
            content_ = in_.byte();
            return;
        default: // a signature that letters do not have
            letter(53 + what);
        }
    }
    /* A letter is an op; a digit d the word of ops just before it 2^d times more. */
    void step(uint8_t what)
    {
        if (isalpha(what) && what < 0x80)
            return letter(what >= 'a' ? what - 'a' + 1u : what - 'A' + 27u);
        in_word_ = false;
        if (what >= '0' && what <= '9')
            return again(1u << (what - '0'));
        if (what == '.')
            drain(AG_DRAIN_SYNC);
        else if (what == ',')
            drain(AG_DRAIN_ASYNC);
        else if (what == '!')
            drain(AG_DRAIN_BREAK);
        else
            happen(what);
        judge();
    }
    Reader in_;
    ag_policy_limits limits_;
    Player player_;
    Ops word_;
    bool in_word_ = false, judged_ = false;
    uint32_t content_ = 0, ops_ = 0, novel_ = 0;
    uint64_t now_ = 1, tick_ = 1000, hash_ = 1;
};

} // namespace

const Target target = {
    "policy", 1000, 600, {"abcd9",       "abcdefgh5.", "ab.", "ab,",
                          "ab!",         "abc4!",      "x",   ".",
                          ",",           "!",          "~",   "+",
                          "-",           "?",          "*",   "#a",
                          "/a",          "$",          ":",   ":::::::",
                          "abcd;;;;;;;", "%a",         "@a",  "&z",
                          "^z",          "=a",         "0",   "3",
                          "5",           "7",          "9",   "abcdefghijklmnopqrstuvwxyz3"}};

void start(int, char **)
{
}

void one(const Bytes &input)
{
    Run run(input), same(input);
    run.play(true);
    same.play(false);
    EXPECT_EQ(run.verdicts(), same.verdicts()) << "the same input, other verdicts";
    const ag_policy_view v = run.player().Look();
    met.ops += v.ops;
    met.replayed += v.replayed;
    met.builds += run.player().builds_asked;
    met.asides += v.asides;
    met.turns += run.player().turns;
    met.verdicts += run.player().verdicts;
    met.dropped += run.dropped;
    met.forgotten += run.forgotten;
    met.pruned += run.full;
}

void finish(bool enough)
{
    if (!enough)
        return;
    EXPECT_GT(met.replayed, met.ops / 10) << "of " << met.ops;
    EXPECT_GT(met.builds, 300u);
    EXPECT_GT(met.dropped, 20u);
    EXPECT_GT(met.asides, 20u);
    EXPECT_GT(met.turns, 20u);
    EXPECT_GT(met.verdicts, 5u);
    EXPECT_GT(met.forgotten, 20u);
    EXPECT_GT(met.pruned, 20u);
}

} // namespace ag_fuzz
