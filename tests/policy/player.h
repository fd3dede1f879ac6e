/* tests/policy/player.h - plays op streams into a policy the way capture does, and judges each
 * verdict. Called by  tests in this folder        Calls  policy/decide.h
 * Promise    knows the ops of each graph by itself: a replay of other ops than those called, a hold
 *            after a send, a replay with an op that was not held or a segment too long is a test
 *            failure at that op
 * Start at   Player::Op() */
#ifndef AG_TESTS_POLICY_PLAYER_H
#define AG_TESTS_POLICY_PLAYER_H

#include "policy/decide.h"

#include "gtest/gtest.h"

#include <functional>
#include <map>
#include <set>
#include <vector>

using Ops = std::vector<uint32_t>;

inline ag_policy_limits Limits()
{
    return {.first_segment = 4,
            .min_segment = 16,
            .max_segment = 256,
            .min_graph = 4,
            .min_seen = 3,
            .max_nodes = 65536};
}

class Player
{
  public:
    explicit Player(ag_policy_limits limits = Limits())
        : limits_(limits), policy_(ag_policy_create(&limits))
    {
    }
    ~Player()
    {
        ag_policy_destroy(policy_);
    }
    Player(const Player &) = delete;
    Player &operator=(const Player &) = delete;

    ag_verdict Op(uint32_t sig)
    {
        if (ag_policy_aside(policy_)) {
            ag_policy_passed(policy_, 1);
            total++;
            return {};
        }
        predicted += ag_policy_expect(policy_) == sig;
        ag_verdict v = ag_policy_op(policy_, sig);
        segment_.push_back(sig);
        total++;
        EXPECT_FALSE(v.hold && !holding_) << "hold after send";
        EXPECT_LE(segment_.size(), limits_.max_segment);
        holding_ = holding_ && v.hold;
        if (v.cut)
            Cut(v);
        TellTime();
        return v;
    }

    void Run(const Ops &ops)
    {
        for (uint32_t sig : ops)
            Op(sig);
    }

    ag_verdict Drain(ag_drain_kind kind)
    {
        ag_verdict v = ag_policy_drain(policy_, kind);
        EXPECT_EQ(v.cut, !segment_.empty()) << "a drain ends a segment that has ops, and no other";
        if (v.cut)
            Cut(v);
        TellTime(); /* cut or not */
        return v;
    }

    void Spoil()
    {
        ag_policy_spoil(policy_);
        holding_ = false;
    }

    /* Its graph is gone, or the build that was asked for will not be made. */
    void Drop(uint32_t segment)
    {
        graphs_.erase(segment);
        waiting_.erase(segment);
        ag_policy_dropped(policy_, segment);
    }

    /* An outcome of a build that nobody asked for: nothing comes of it. */
    void Unasked(uint32_t segment, bool works)
    {
        if (waiting_.count(segment))
            return;
        if (works)
            ag_policy_built(policy_, segment, ++last_graph_);
        else
            ag_policy_failed(policy_, segment);
    }

    /* So many ops that nobody looked at, if nobody has to. */
    void Pass(uint32_t ops)
    {
        if (!ag_policy_aside(policy_))
            return;
        ag_policy_passed(policy_, ops);
        total += ops;
    }

    void Forget()
    {
        graphs_.clear();
        waiting_.clear();
        ag_policy_forget(policy_);
        holding_ = false;
    }

    /* Outcomes of builds that were put off with `build_later`. */
    void FinishBuild(bool works)
    {
        if (waiting_.empty())
            return;
        auto [segment, ops] = *waiting_.begin();
        waiting_.erase(waiting_.begin());
        Finish(segment, ops, works);
    }

    void Finish(uint32_t segment, const Ops &ops, bool works)
    {
        if (!works) {
            failed_builds++;
            ag_policy_failed(policy_, segment);
            return;
        }
        graphs_[segment] = {++last_graph_, ops};
        built_nodes += ops.size();
        ag_policy_built(policy_, segment, last_graph_);
    }

    void ExpectSound()
    {
        const char *why = "";
        EXPECT_TRUE(ag_policy_check(policy_, &why)) << why;
        ag_policy_view v = Look();
        EXPECT_EQ(v.depth, segment_.size());
        EXPECT_EQ(v.graphs, graphs_.size());
        EXPECT_EQ(v.replayed, replayed);
    }

    ag_policy_view Look() const
    {
        ag_policy_view v;
        ag_policy_look(policy_, &v);
        return v;
    }

    /* Starts counting anew; what is learned stays. */
    void Mark()
    {
        total = replayed_since = cuts = 0;
        distinct.clear();
    }
    double Share() const
    {
        return total ? double(replayed_since) / double(total) : 0;
    }
    std::vector<uint32_t> WaitingSegments() const
    {
        std::vector<uint32_t> all;
        for (auto &w : waiting_)
            all.push_back(w.first);
        return all;
    }
    std::vector<uint32_t> GraphSegments() const
    {
        std::vector<uint32_t> all;
        for (auto &g : graphs_)
            all.push_back(g.first);
        return all;
    }
    ag_policy *policy()
    {
        return policy_;
    }

    uint64_t total = 0, replayed = 0, replayed_since = 0, cuts = 0, predicted = 0;
    uint64_t built_nodes = 0, builds_asked = 0, failed_builds = 0;
    std::set<Ops> distinct; /* segments seen since Mark() */
    bool build_works = true, build_later = false;
    std::function<uint64_t()> clock; /* without one the time is never told */
    uint64_t turns = 0, verdicts = 0;

  private:
    struct Graph {
        uint32_t number;
        Ops ops;
    };

    void TellTime()
    {
        if (!clock || !ag_policy_wants_time(policy_))
            return;
        EXPECT_TRUE(segment_.empty()) << "the time is wanted in the middle of a segment";
        const ag_pace_news news = ag_policy_time(policy_, clock());
        EXPECT_FALSE(ag_policy_wants_time(policy_)) << "the time is wanted again at once";
        turns += news != AG_PACE_NOTHING;
        verdicts += news == AG_PACE_CHOSEN;
    }

    void Cut(const ag_verdict &v)
    {
        cuts++;
        distinct.insert(segment_);
        if (v.use == AG_USE_REPLAY) {
            auto g = graphs_.find(v.segment);
            ASSERT_NE(g, graphs_.end()) << "replay of a graph that does not exist";
            EXPECT_EQ(g->second.number, v.graph);
            EXPECT_EQ(g->second.ops, segment_) << "replay of other ops than were called";
            EXPECT_TRUE(holding_) << "replay of ops that were sent";
            replayed += segment_.size();
            replayed_since += segment_.size();
        }
        if (v.use == AG_USE_BUILD) {
            builds_asked++;
            EXPECT_NE(v.segment, 0u);
            EXPECT_GE(segment_.size(), limits_.min_graph);
            EXPECT_EQ(graphs_.count(v.segment) + waiting_.count(v.segment), 0u)
                << "asked for twice";
            if (build_later)
                waiting_[v.segment] = segment_;
            else
                Finish(v.segment, segment_, build_works);
        }
        segment_.clear();
        holding_ = true;
    }

    ag_policy_limits limits_;
    ag_policy *policy_;
    Ops segment_;
    bool holding_ = true;
    uint32_t last_graph_ = 0;
    std::map<uint32_t, Graph> graphs_;
    std::map<uint32_t, Ops> waiting_;
};

/* A loop body of n different ops. */
inline Ops Body(uint32_t n, uint32_t from = 1)
{
    Ops ops;
    for (uint32_t i = 0; i < n; i++)
        ops.push_back(from + i);
    return ops;
}

#endif
