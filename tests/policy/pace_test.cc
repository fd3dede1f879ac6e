// Slow hosts in simulated time: a host that takes `gap` for what it does between two launches, a device that takes
// `work` for each, a synchronisation every `period` launches. Costs in us as measured inside PyTorch on one H200
// (docs/BENCHMARKS.md): an eager launch 6, a held one 0.5, launching a graph 4 and 0.1 a node.
#include "policy/decide.h"
#include "policy/pay.h"

#include "gtest/gtest.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <random>
#include <utility>
#include <vector>

namespace
{
constexpr double EAGER = 6, HELD = 0.5, GRAPH = 4, NODE = 0.1, SYNC = 5, BOUND = 100;

enum class Waits { AfterSync, AfterPolls, Anywhere };

struct Program {
    double gap, work;
    uint32_t period, sync_every; // ops of an iteration; iterations between synchronisations
    // Once for each it waits for work: at random, on average this many times what the host itself takes. Either when a
    // synchronisation has returned, or when it has asked until the device was idle, or between any two launches.
    double idle = 0;
    Waits waits = Waits::AfterSync;
    // Sigmas of lognormal factors on the gap: of each place of the iteration, of each time, of the machine's mood,
    // which changes once in a hundred iterations.
    double uneven = 0, jitter = 0, moods = 0;
};

class Simulation
{
  public:
    explicit Simulation(const Program &program, ag_pace_kind pace = AG_PACE_KINDS,
                        uint64_t seed = 1)
        : program_(program), random_(seed)
    {
        const ag_policy_limits limits = {8, 64, 256, 2, 3, 65536, pace};
        policy_ = ag_policy_create(&limits);
        double sum = 0;
        for (uint32_t k = 0; k < program.period; k++)
            sum += places_.emplace_back(Factor(program.uneven));
        for (double &place : places_)
            place *= program.period / sum;
    }
    ~Simulation()
    {
        ag_policy_destroy(policy_);
    }

    // Runs iterations; returns us per iteration, without those that it waited for work.
    double Run(uint32_t iterations)
    {
        const double began = host_, waited = waited_;
        for (uint32_t i = 0; i < iterations; i++) {
            if (program_.moods > 0 && random_() % 100 == 0)
                mood_ = Factor(program_.moods);
            for (uint32_t k = 0; k < program_.period; k++)
                Launch(1 + k);
            if (++iteration_ % program_.sync_every == 0)
                Sync();
        }
        return (host_ - began - (waited_ - waited)) / iterations;
    }

    static double Eager(const Program &p, uint32_t iterations)
    {
        double host = 0, device = 0;
        for (uint32_t i = 0; i < iterations; i++) {
            for (uint32_t k = 0; k < p.period; k++) {
                host += p.gap + EAGER;
                device = std::max(device, host) + p.work;
            }
            if ((i + 1) % p.sync_every == 0)
                host = std::max(host, device) + SYNC;
        }
        return std::max(host, device) / iterations;
    }

    // From now on the host takes so long between two launches.
    void SlowDown(double gap)
    {
        program_.gap = gap;
    }
    void ExpectSound() const
    {
        const char *why = "";
        EXPECT_TRUE(ag_policy_check(policy_, &why)) << why;
    }
    void Become(const Program &program)
    {
        program_ = program;
    }
    uint32_t Patience() const
    {
        return ag_policy_patience(policy_);
    }
    ag_pace_kind Pace() const
    {
        return ag_policy_pace(policy_);
    }
    uint64_t asked = 0, trials = 0, launches = 0, replayed = 0, patient = 0,
             eager = 0;                   // launches at that pace
    ag_pace_kind chosen = AG_PACE_PROMPT; // by the last trial

  private:
    double Factor(double sigma)
    {
        return sigma > 0 ? std::exp(std::normal_distribution<double>(0, sigma)(random_)) : 1;
    }

    void Launch(uint32_t sig)
    {
        const double before = host_, place = program_.uneven > 0 ? places_[sig - 1] : 1;
        host_ += program_.gap * place * mood_ * Factor(program_.jitter);
        launches++;
        patient += Pace() == AG_PACE_PATIENT;
        eager += Pace() == AG_PACE_EAGER;
        if (program_.waits == Waits::Anywhere &&
            random_() % (program_.period * program_.sync_every) == 0)
            Wait();
        if (seen_idle_ > 0)
            ag_policy_idle(policy_, uint64_t((host_ - std::exchange(seen_idle_, 0)) * 1000));
        // The liveness thread has looked meanwhile.
        const bool silent = program_.uneven > 0 && host_ - before > BOUND;
        if (held_ && (silent || host_ - first_held_ > BOUND * patience_))
            Cut(ag_policy_drain(policy_, AG_DRAIN_BREAK));
        if (ag_policy_aside(policy_)) {
            ag_policy_passed(policy_, 1);
            Send(1);
            return;
        }
        if (!open_)
            patience_ = ag_policy_patience(policy_);
        open_ = true;
        const ag_verdict v = ag_policy_op(policy_, sig);
        if (v.hold) {
            host_ += HELD;
            first_held_ = held_++ ? first_held_ : host_;
        } else {
            Send(held_ + 1);
            held_ = 0;
        }
        if (v.cut)
            Cut(v);
    }

    void Send(uint32_t ops)
    {
        for (uint32_t i = 0; i < ops; i++) {
            host_ += EAGER;
            device_ = std::max(device_, host_) + program_.work;
        }
    }

    void Cut(const ag_verdict &v)
    {
        if (v.use == AG_USE_REPLAY) {
            host_ += GRAPH + NODE * held_;
            replayed += held_;
            device_ = std::max(device_, host_) + program_.work * held_;
        } else {
            Send(held_);
        }
        held_ = 0;
        open_ = false;
        if (v.use == AG_USE_BUILD)
            ag_policy_built(policy_, v.segment, ++graphs_);
        TellTime();
    }

    void TellTime()
    {
        if (!ag_policy_wants_time(policy_))
            return;
        asked++;
        const ag_pace_news news = ag_policy_time(policy_, uint64_t(host_ * 1000));
        trials += news == AG_PACE_CHOSEN;
        chosen = news == AG_PACE_CHOSEN ? Pace() : chosen;
    }

    void Sync()
    {
        if (program_.waits == Waits::AfterPolls)
            Cut(ag_policy_drain(policy_, AG_DRAIN_ASYNC)); // the first poll
        else
            Cut(ag_policy_drain(policy_, AG_DRAIN_SYNC)); // also tells the time, cut or not
        host_ = std::max(host_, device_) + SYNC;
        if (program_.waits == Waits::AfterPolls)
            Cut(ag_policy_drain(policy_, AG_DRAIN_SYNC));
        seen_idle_ = host_;
        if (program_.waits != Waits::Anywhere)
            Wait();
    }

    void Wait()
    {
        std::exponential_distribution<double> share(1);
        const double own = program_.period * program_.sync_every * (program_.gap + EAGER);
        const double wait = program_.idle > 0 ? program_.idle * own * share(random_) : 0;
        const double until = host_ + wait;
        if (held_ && wait > BOUND) { // silent: the liveness thread submits it
            host_ += BOUND;
            Cut(ag_policy_drain(policy_, AG_DRAIN_BREAK));
        }
        host_ = std::max(host_, until);
        waited_ += wait;
    }

    Program program_;
    ag_policy *policy_;
    std::mt19937_64 random_;
    std::vector<double> places_;
    double mood_ = 1, waited_ = 0, host_ = 1, device_ = 0, first_held_ = 0, seen_idle_ = 0;
    uint32_t held_ = 0, patience_ = 1, graphs_ = 0, iteration_ = 0;
    bool open_ = false;
};

// C4, C5: a host that is the bottleneck is granted patience, and gains by it.
TEST(Pace, AHostThatTheProgramWaitsForGetsLongerGraphs)
{
    const Program p = {30, 2, 120, 1};
    Simulation s(p);
    s.Run(1000);
    EXPECT_EQ(AG_PACE_PATIENT, s.Pace());
    EXPECT_EQ(AG_PACE_PATIENCE, s.Patience());
    const double eager = Simulation::Eager(p, 1000);
    EXPECT_LT(s.Run(500), eager * 0.88);
}

// C5: where the device would wait for what is held, the bound stays as it is.
TEST(Pace, ADeviceThatTheProgramWaitsForIsNotKeptWaiting)
{
    const Program p = {30, 33, 60, 1};
    Simulation s(p);
    s.Run(3000);
    EXPECT_NE(AG_PACE_PATIENT, s.Pace());
    EXPECT_EQ(1u, s.Patience());
    EXPECT_GE(s.trials, 1u);
}

// C5: not even two launches come within the bound, but seven within the patience.
TEST(Pace, AHostThatMakesOneLaunchWithinTheBoundHasGraphsWithPatience)
{
    Simulation s({2, 1, 120, 1});
    s.Run(100);
    s.SlowDown(120);
    s.Run(3000);
    s.ExpectSound();
    EXPECT_EQ(AG_PACE_PATIENT, s.chosen);
    EXPECT_LT(s.Run(500), Simulation::Eager({120, 1, 120, 1}, 500) * 0.98);
}

// C5: a host that was slow once, while it read its data, say, has shorter trials again later on.
TEST(Pace, AHostThatIsFastAgainIsNotTriedWithPatienceForEver)
{
    for (uint32_t period : {100u, 120u, 150u}) {
        Simulation s({30, 2, period, 1});
        s.Run(120000 / period);
        ASSERT_EQ(AG_PACE_PATIENT, s.chosen) << period;
        s.SlowDown(2);
        s.Run(20000000 / period);
        s.patient = 0;
        for (const uint64_t before = s.trials; s.trials == before;)
            s.Run(1);
        EXPECT_EQ(0u, s.patient) << period;
        s.SlowDown(30);
        s.Run(20000000 / period);
        EXPECT_EQ(AG_PACE_PATIENT, s.chosen) << period;
        s.ExpectSound();
    }
}

// A launch-bound loop: one round decides, and a trial is over soon.
TEST(Pace, AFastHostKeepsItsGraphsAfterAShortTrial)
{
    Simulation s({2, 1, 120, 1});
    s.Run(200);
    EXPECT_EQ(1u, s.trials);
    EXPECT_LE(s.asked, 12u);
    EXPECT_EQ(AG_PACE_PROMPT, s.Pace());
}

// The trials themselves leave most launches to graphs, in a program that ends after a few thousand iterations too.
TEST(Pace, ATrialIsShort)
{
    for (double gap : {16., 30., 40.}) {
        Simulation s({gap, 2, 118, 60});
        s.Run(420);
        EXPECT_GT(double(s.replayed), 0.75 * double(s.launches)) << gap;
        EXPECT_EQ(AG_PACE_PATIENT, s.Pace()) << gap;
    }
}

struct Moody {
    uint32_t programs = 0, short_of = 0, given_up = 0;
    double share = 0, ratio = 0; // means
};

// Training loops of PyTorch: gaps between launches as uneven as they were there, on a machine whose speed changes by
// more than the paces differ. Graphs pay a little in all of them.
Moody MoodyMachine(double gap, uint32_t period, double least_share)
{
    Moody all;
    for (double uneven : {0.3, 0.8, 1.2}) {
        for (uint64_t seed = 1; seed <= 24; seed++, all.programs++) {
            const Program p = {gap, 2, period, 20, 0, Waits::AfterSync, uneven, 0.25, 0.15};
            Simulation s(p, AG_PACE_KINDS, seed);
            Simulation eager(p, AG_PACE_EAGER, seed);
            const double took = s.Run(420);
            all.ratio += took / eager.Run(420);
            const double share = double(s.replayed) / double(s.launches);
            all.share += share;
            all.short_of += share < least_share;
            s.Run(1600);
            all.given_up += s.Pace() == AG_PACE_EAGER;
            s.ExpectSound();
        }
    }
    all.share /= all.programs;
    all.ratio /= all.programs;
    printf("%u programs, %.0f us between launches: %.3f in graphs, %u below %.2f, %u without "
           "graphs after "
           "2020 iterations, %.3f of eager\n",
           all.programs, gap, all.share, all.short_of, least_share, all.given_up, all.ratio);
    return all;
}

// C5
TEST(Pace, AMoodyMachineDoesNotTalkAProgramOutOfItsGraphs)
{
    for (double gap : {30., 42.}) {
        const Moody all = MoodyMachine(gap, 118, 0.8);
        EXPECT_GE(all.share, 0.85);
        EXPECT_LE(all.short_of * 50, all.programs);
        EXPECT_LE(all.given_up * 50, all.programs);
        EXPECT_LT(all.ratio, 0.97);
    }
}

// ... nor a host that makes no two launches within the bound, now and then.
TEST(Pace, AHostThatIsBrokenAllOverHasGraphsFromEachOfItsLaunchesOn)
{
    const Moody all = MoodyMachine(75, 204, 0.7);
    EXPECT_GE(all.share, 0.77);
    EXPECT_LE(all.short_of * 50, all.programs);
    EXPECT_LT(all.ratio, 0.99);
}

TEST(Pace, ATrialIsRepeatedEverMoreSeldom)
{
    Simulation s({30, 2, 120, 1});
    s.Run(40000); // 4.8 million ops
    EXPECT_GE(s.trials, 3u);
    EXPECT_LE(s.trials, 6u);
}

// C5: a host whose segments are now and then tried longer, and broken again, is not measured anew each time.
TEST(Pace, LengthsThatChangeForEverDoNotBringTrialsForEver)
{
    Simulation s({2, 1, 120, 1});
    s.Run(100);
    s.SlowDown(120);
    s.Run(40000);
    EXPECT_GE(s.trials, 2u);
    EXPECT_LE(s.trials, 14u); // 4.8 million launches
}

// One trial of a slow host in which an op costs ns(pace, round); returns the verdict.
template <typename Cost> ag_pace_kind Verdict(Cost ns)
{
    ag_pace y;
    uint64_t now = 1;
    ag_pace_init(&y, AG_PACE_KINDS);
    ag_pace_host_is_slow(&y);
    for (ag_pace_news news = AG_PACE_NOTHING; news != AG_PACE_CHOSEN;) {
        now += AG_PACE_BLOCK * ns(y.now, y.round);
        if (ag_pace_segment(&y, AG_PACE_BLOCK, AG_PACE_BLOCK, AG_PACE_AT_SYNC))
            news = ag_pace_time(&y, now);
        EXPECT_TRUE(ag_pace_check(&y, nullptr));
    }
    return y.now;
}

// C5: what was measured of a pace that left the trial is not compared with what others cost later.
TEST(Pace, AMachineThatBecomesSlowerDuringATrialDoesNotBringBackAPaceThatHasLost)
{
    const uint64_t cost[] = {100, 120, 95}; // prompt, eager, patient
    EXPECT_EQ(AG_PACE_PATIENT, Verdict([&](int pace, int) { return cost[pace]; }));
    EXPECT_EQ(AG_PACE_PATIENT,
              Verdict([&](int pace, int round) { return cost[pace] * (round ? 2 : 1); }));
    const uint64_t other[] = {120, 100, 99};
    EXPECT_EQ(AG_PACE_PATIENT,
              Verdict([&](int pace, int round) { return other[pace] * (round ? 2 : 1); }));
}

// C5: a stream that was better off eager is looked at again before long, however often that was so.
TEST(Pace, AProgramThatChangesItsWaysIsNotLeftEagerForLong)
{
    const Program waits = {30, 33, 10, 1};
    Simulation s(waits);
    s.Run(600000); // six million launches: the rests have grown
    ASSERT_EQ(AG_PACE_EAGER, s.Pace());
    s.Become({2, 1, 120, 1});
    s.Run((AG_PAY_ASIDE_MOST + 100000) / 120);
    EXPECT_NE(AG_PACE_EAGER, s.Pace());
}

struct Plane {
    uint32_t programs = 0, above = 0; // above 1.02 of eager
    double worst = 0, sum = 0;
};

#ifdef NDEBUG
constexpr uint32_t STRIDE = 1;
#else
constexpr uint32_t STRIDE =
    7; // a part of the plane will do under a sanitizer; prime to the lengths of the loops
#endif

// us per iteration that the program takes eagerly, besides its waits. Without a synchronisation before them the device
// works meanwhile.
double Eager(const Program &p, uint32_t before, uint32_t more)
{
    if (p.waits != Waits::Anywhere)
        return Simulation::Eager(p, more);
    Simulation s(p, AG_PACE_EAGER);
    s.Run(before);
    return s.Run(more);
}

Plane Sweep(ag_pace_kind pace, double idle = 0, Waits waits = Waits::AfterSync)
{
    Plane plane;
    uint32_t at = 0;
    for (double gap : {1., 5., 10., 20., 30., 47., 80., 150.}) {
        for (double work : {1., 3., 6., 10., 20., 26., 36., 53., 86., 156., 300.}) {
            for (uint32_t period : {10u, 30u, 88u, 300u}) {
                for (uint32_t sync_every : {1u, 5u, 60u}) {
                    if (at++ % STRIDE)
                        continue;
                    const Program p = {gap, work, period, sync_every, idle, waits};
                    const uint32_t before =
                        (pace == AG_PACE_KINDS ? 180000 : 20000) / period; // after a trial
                    const uint32_t more = 60 * (1 + 600 / (period * sync_every)) * sync_every;
                    Simulation s(p, pace);
                    s.Run(before);
                    const double ratio =
                        1 + (s.Run(more) - Eager(p, before, more)) / Simulation::Eager(p, more);
                    plane.worst = std::max(plane.worst, ratio);
                    plane.sum += ratio;
                    plane.above += ratio > 1.02;
                    plane.programs++;
                }
            }
        }
    }
    printf("%u programs: %u above 1.02, worst %.3f, mean %.3f of eager\n", plane.programs,
           plane.above, plane.worst, plane.sum / plane.programs);
    return plane;
}

// C5: the whole plane of hosts and devices, in simulated time.
TEST(Pace, NoHostAndNoDeviceIsSlowedDown)
{
    const Plane plane = Sweep(AG_PACE_KINDS);
    EXPECT_LE(plane.worst, 1.02);
    EXPECT_LT(plane.sum / plane.programs, 0.94);
}

// C5: what a program waits for work is not what its launches cost.
TEST(Pace, NoProgramThatWaitsForWorkIsSlowedDown)
{
    for (double idle : {0.1, 2.}) {
        const Plane plane = Sweep(AG_PACE_KINDS, idle);
        EXPECT_LE(plane.worst, 1.02) << idle;
        EXPECT_LT(plane.sum / plane.programs, 0.94) << idle;
    }
    const Plane plane = Sweep(AG_PACE_KINDS, 2, Waits::AfterPolls);
    EXPECT_LE(plane.worst, 1.02);
    EXPECT_LT(plane.sum / plane.programs, 0.94);
}

// C5, a limit: a wait between two launches may be one for what is held, so that it counts. Few programs are misjudged
// for it, since the device works meanwhile.
TEST(Pace, WaitsThatNothingTellsFromWaitsForTheDeviceCostFewProgramsALittle)
{
    const Plane plane = Sweep(AG_PACE_KINDS, 2, Waits::Anywhere);
    EXPECT_LE(plane.worst, 1.08);
    EXPECT_LE(plane.above * 100, plane.programs * 2);
    EXPECT_LT(plane.sum / plane.programs, 0.94);
}

// What a block of `ns`, `idle` of them idle, is found to cost after one that was idle for long.
uint32_t CostOf(uint64_t ns, uint64_t idle)
{
    ag_pace y;
    ag_pace_init(&y, AG_PACE_KINDS);
    uint64_t now = 1000;
    auto block = [&](uint64_t took, uint64_t was_idle) {
        ag_pace_idle(&y, was_idle);
        now += took;
        ag_pace_segment(&y, AG_PACE_BLOCK, AG_PACE_BLOCK, AG_PACE_AT_SYNC);
        ag_pace_time(&y, now);
    };
    for (uint32_t ops = 0; ops < AG_PACE_RIPE; ops += AG_PACE_BLOCK)
        block(1 << 20, 1 << 19);
    EXPECT_EQ(AG_PACE_TRIAL, y.phase);
    block(1 << 20, 1 << 19); // does not count
    block(ns, idle);
    EXPECT_EQ(AG_PACE_EAGER, y.now) << "the turn is over";
    return y.cost[AG_PACE_PROMPT][0];
}

// C5: ... only of the block in which it was, and never more than all of it.
TEST(Pace, IdleTimeIsLeftOutOfItsBlockAlone)
{
    const uint32_t whole = (1 << 20) * 16 / AG_PACE_BLOCK;
    EXPECT_EQ(whole / 2, CostOf(1 << 20, 1 << 19));
    EXPECT_EQ(whole, CostOf(1 << 20, 0));
    EXPECT_EQ(whole, CostOf(1 << 20, 1 << 21));
}

// ... and a pace that is not measured does slow some down: the plane can tell.
TEST(Pace, EitherPaceAloneSlowsSomeDown)
{
    EXPECT_GT(Sweep(AG_PACE_PROMPT).worst, 1.1);
    EXPECT_GT(Sweep(AG_PACE_PATIENT).worst, 1.3);
}
} // namespace
