// Streams that one thread gives work to in turn, against a scripted driver: one sequence to policy, a chain of each
// stream to the driver, waits for events between them.
#include "capture/event.h"
#include "tests/capture/scripted_driver.h"

#include <gtest/gtest.h>
#include <functional>
#include <random>
#include <thread>

namespace
{
CUevent Event(uintptr_t i)
{
    return reinterpret_cast<CUevent>(0xe0000 + 0x100 * i);
}
CUstream Stream(uintptr_t i)
{
    return reinterpret_cast<CUstream>(0x500 + 0x10 * i);
}

struct Asked {
    CUstream stream;
    std::string op;
};

// In which order a driver may do what was asked: that of each stream, each wait behind the record it was for and before
// any other of its event. A record may be left out that a later one overtakes before anything waits for it. What the
// driver is given by itself it is given in the order of the calls: each may have to wait for room.
class Order
{
  public:
    explicit Order(const std::vector<Asked> &asked) : asked(asked)
    {
    }
    void Check(const std::vector<ScriptedDriver::Executed> &executed)
    {
        std::map<CUstream, size_t> at;      // next op of the stream
        std::map<std::string, size_t> last; // op that was the last record, by what follows "record"
        size_t done = 0, by_itself = 0;
        for (size_t k = 0; k < executed.size(); k++) {
            size_t i = Next(executed[k].stream, &at[executed[k].stream]);
            for (; i < asked.size() && asked[i].op != executed[k].op && IsOvertaken(i); done++)
                i = Next(executed[k].stream, &at[executed[k].stream]);
            ASSERT_LT(i, asked.size());
            ASSERT_EQ(asked[i].op, executed[k].op)
                << "op " << k << " of stream " << executed[k].stream;
            done++;
            if (executed[k].how == "eager") {
                ASSERT_LE(by_itself, i) << asked[i].op;
                by_itself = i;
            }
            if (IsA("record", i))
                last[asked[i].op.substr(6)] = i;
            if (IsA("wait", i)) {
                ASSERT_EQ(RecordBefore(i), last[asked[i].op.substr(4)])
                    << asked[i].op << ", op " << i;
            }
        }
        EXPECT_EQ(asked.size(), done) << "every op once";
    }

  private:
    bool IsA(const char *kind, size_t i) const
    {
        return asked[i].op.compare(0, strlen(kind), kind) == 0;
    }
    size_t Next(CUstream stream, size_t *at) const
    {
        while (*at < asked.size() && asked[*at].stream != stream)
            ++*at;
        return (*at)++;
    }
    bool IsOvertaken(size_t i) const
    {
        if (!IsA("record", i))
            return false;
        const std::string wait = "wait" + asked[i].op.substr(6);
        for (size_t k = i + 1; k < asked.size() && asked[k].op != wait; k++)
            if (asked[k].op == asked[i].op)
                return true;
        return false;
    }
    size_t RecordBefore(size_t wait) const
    {
        const std::string record = "record" + asked[wait].op.substr(4);
        while (wait-- && asked[wait].op != record)
            ;
        return wait;
    }
    const std::vector<Asked> &asked;
};

struct Program {
    Program() : f(d.Function("f", {8}))
    {
        for (uintptr_t i = 0; i < 64; i++)
            ag_event_came(&d.cap, Event(i), CU_EVENT_DISABLE_TIMING);
    }
    void Launch(CUstream s, int i, int more = 0)
    {
        char text[60];
        const int n = snprintf(text, sizeof text, "f <<<%d,32>>> ", 1 + i);
        const uint64_t value = i + more;
        asked.push_back({s, Text(text, n, value)});
        EXPECT_EQ(CUDA_SUCCESS, d.Launch8(f, value, 1 + i, s));
    }
    static std::string Text(const char *text, int n, uint64_t value)
    {
        std::string out(text, n - 1);
        for (int b = 0; b < 8; b++) {
            char hex[4];
            snprintf(hex, sizeof hex, " %02x", (unsigned)(value >> 8 * b & 255));
            out += hex;
        }
        return out;
    }
    void Record(CUstream s, CUevent e)
    {
        asked.push_back({s, ScriptedDriver::RecordText(e)});
        EXPECT_EQ(CUDA_SUCCESS, d.Record(e, s));
    }
    void Wait(CUstream s, CUevent e)
    {
        asked.push_back({s, ScriptedDriver::WaitText(e)});
        EXPECT_EQ(CUDA_SUCCESS, d.Wait(s, e));
    }
    // Launches of several streams, one each in turn.
    void RoundRobin(int streams, int ops)
    {
        for (int i = 0; i < ops; i++)
            Launch(Stream(i % streams), i);
    }
    // One stream forks to another and is joined again, `forks` times.
    void Forks(int forks, int event)
    {
        for (int k = 0; k < forks; k++) {
            Launch(Stream(0), 4 * k);
            Launch(Stream(0), 4 * k + 1);
            Record(Stream(0), Event(event));
            Wait(Stream(1), Event(event));
            Launch(Stream(1), 4 * k + 2);
            Launch(Stream(0), 4 * k + 3);
            Launch(Stream(1), 4 * k);
            Launch(Stream(0), 4 * k + 1);
            Record(Stream(1), Event(event + 1));
            Wait(Stream(0), Event(event + 1));
        }
    }
    template <typename F> void Loop(int rounds, F body)
    {
        for (int k = 0; k < rounds; k++) {
            body();
            d.Synchronize();
        }
    }
    // Launches executed in graphs since the last time, of all.
    double Share()
    {
        size_t in_graphs = 0, launches = 0;
        for (; looked < d.executed.size(); looked++) {
            launches += d.executed[looked].op[0] == 'f';
            in_graphs += d.executed[looked].op[0] == 'f' && d.executed[looked].how == "graph";
        }
        return launches ? (double)in_graphs / launches : 0;
    }
    // Every launch is counted once, as what became of it.
    void CheckCounts()
    {
        uint64_t launches = d.counters.launches_replayed.load();
        for (const auto &eager : d.counters.eager)
            launches += eager.load();
        EXPECT_EQ(d.counters.launches_seen.load(), launches);
    }
    void Check()
    {
        Order(asked).Check(d.executed);
        d.CheckInvariants();
        CheckCounts();
    }

    ScriptedDriver d;
    CUfunction f;
    std::vector<Asked> asked;
    size_t looked = 0;
};

class Turns : public ::testing::Test, public Program
{
};

// C1: in the order of each stream.
TEST_F(Turns, OfOneOpEachBecomeGraphsOfEachStream)
{
    Loop(40, [&] { RoundRobin(3, 48); });
    Share();
    const int before = d.calls["cuGraphLaunch"];
    Loop(10, [&] { RoundRobin(3, 48); });
    EXPECT_GT(Share(), 0.85); // the first ops after a synchronisation are too few
    EXPECT_LE(d.calls["cuGraphLaunch"] - before, 10 * 3 * 4) << "three a segment";
    EXPECT_EQ(2u, d.counters.tracks_joined.load());
    Check();
}

// C1: a wait stays between what is before it and behind it, the record that it is for comes first.
TEST_F(Turns, ThatWaitForEachOtherKeepTheirWaits)
{
    Loop(200, [&] { RoundRobin(2, 16); });
    Loop(40, [&] { Forks(6, 0); });
    Share();
    Loop(10, [&] { Forks(6, 0); });
    EXPECT_GT(Share(), 0.6);
    EXPECT_GT(d.counters.waits_held.load(), 100u);
    Check();
}

// C1, O-14: the stream waits for the record that stood before the wait.
TEST_F(Turns, WaitForTheRecordBeforeThemThoughTheEventIsRecordedAgain)
{
    auto body = [&] {
        for (int k = 0; k < 6; k++) {
            Launch(Stream(0), 8 * k);
            Launch(Stream(0), 8 * k + 1);
            Record(Stream(0), Event(0));
            Launch(Stream(0), 8 * k + 2);
            Wait(Stream(1), Event(0));
            Launch(Stream(1), 8 * k + 3);
            Launch(Stream(1), 8 * k + 4);
            Launch(Stream(0), 8 * k + 5);
            Record(Stream(0), Event(0));
            Launch(Stream(0), 8 * k + 6);
            Launch(Stream(1), 8 * k + 7);
        }
    };
    Loop(200, [&] { RoundRobin(2, 16); });
    Loop(40, body);
    Share();
    Loop(10, body);
    EXPECT_GT(Share(), 0.5);
    Check();
}

// C1, O-14: which of its records an event is waited for in between differs from round to round.
TEST_F(Turns, WaitForTheRecordBeforeThemThoughOtherEventsTakeTurnsToo)
{
    int round = 0;
    auto body = [&] {
        const int again = ++round % 8 ? 1 : 0; // mostly another event than the one waited for
        for (int k = 0; k < 6; k++) {
            Launch(Stream(0), 8 * k);
            Launch(Stream(0), 8 * k + 1);
            Record(Stream(0), Event(0));
            Launch(Stream(0), 8 * k + 2);
            Wait(Stream(1), Event(0));
            Launch(Stream(1), 8 * k + 3);
            Launch(Stream(1), 8 * k + 4);
            Record(Stream(0), Event(again));
            Launch(Stream(0), 8 * k + 6);
            Launch(Stream(1), 8 * k + 7);
        }
    };
    Loop(200, [&] { RoundRobin(2, 16); });
    Loop(80, body);
    Share();
    Loop(10, body);
    EXPECT_GT(Share(), 0.5) << "and goes on in graphs";
    Check();
}

// C4: a launch and the record behind it, too little for a graph, which would have stood before another stream's launch.
TEST_F(Turns, ThatAreTooShortForGraphsAreGivenInTheOrderOfTheCalls)
{
    auto body = [&] {
        for (int k = 0; k < 6; k++) {
            Launch(Stream(1), 8 * k);
            Launch(Stream(1), 8 * k + 1);
            Wait(Stream(1), Event(0));
            Launch(Stream(0), 8 * k + 2);
            Launch(Stream(1), 8 * k + 3);
            Record(Stream(0), Event(1));
            Record(Stream(0), Event(0));
            Launch(Stream(0), 8 * k + 4);
            Launch(Stream(0), 8 * k + 5);
            Wait(Stream(0), Event(2));
        }
    };
    Record(Stream(0), Event(0));
    Record(Stream(0), Event(2));
    Loop(200, [&] { RoundRobin(2, 16); });
    Loop(50, body);
    EXPECT_GT(Share(), 0.3);
    Check();
}

// A program whose n-th call of the entry point fails once its streams are joined. False: it makes fewer.
bool Fails(const char *entry, int n)
{
    Program p;
    int round = 0;
    p.Loop(12, [&] { p.RoundRobin(2, 16); });
    EXPECT_EQ(1u, p.d.counters.tracks_joined.load());
    const int before = p.d.calls[entry];
    p.d.FailCall(entry, before + n, CUDA_ERROR_OUT_OF_MEMORY);
    p.Loop(40, [&] {
        p.Forks(4, 2);
        for (int i = 0; i < 8; i++)
            p.Launch(Stream(i % 2), i, round++ & 127);
    });
    p.Check();
    return p.d.calls[entry] - before >= n;
}

// C1, C2: whatever call of the driver fails while they are built or replayed, each op is made once, in order.
TEST(TurnsWithAFailure, LoseNothing)
{
    const char *const entries[] = {
        "cuGraphCreate", "cuGraphAddKernelNode_v2",           "cuGraphInstantiateWithFlags",
        "cuGraphUpload", "cuGraphExecKernelNodeSetParams_v2", "cuGraphLaunch"};
    for (const char *entry : entries) {
        SCOPED_TRACE(entry);
        int n = 1;
        while (!::testing::Test::HasFailure() && Fails(entry, n))
            n += 1 + n / 8; // each of the first ones, then fewer
        EXPECT_GT(n, 4);
    }
}

// C1, C3: an op of another thread ends the segment; where several threads take turns nothing is joined.
TEST_F(Turns, OfTwoThreadsAreNotJoined)
{
    for (int k = 0; k < 300; k++) {
        Launch(Stream(0), k % 7);
        std::thread([&] { Launch(Stream(1), k % 7); }).join();
    }
    EXPECT_EQ(0u, d.counters.tracks_joined.load());
    d.Synchronize();
    Check();
}

// C1: what another thread asks for comes behind all that was asked for before it.
TEST_F(Turns, EndWhereAnotherThreadComes)
{
    Loop(200, [&] { RoundRobin(2, 16); });
    for (int i = 0; i < 6; i++)
        Launch(Stream(i % 2), i);
    const size_t before = d.executed.size();
    EXPECT_LT(before, asked.size()) << "some are held";
    std::thread([&] { Launch(Stream(0), 6); }).join();
    EXPECT_GE(d.executed.size(), asked.size() - 1);
    d.Synchronize();
    Check();
}

// C4: a thread ended, the next one has its place in memory. What the one left is not in front of what the other does.
TEST_F(Turns, EndWhereAnotherThreadComesThatHasThePlaceOfTheLast)
{
    Loop(200, [&] { RoundRobin(2, 16); });
    size_t given = 0;
    auto thread = [](std::function<void()> body, const void **out_place) {
        std::thread([&] {
            static thread_local char place; // beside what the shim has of the thread
            *out_place = &place;
            body();
        }).join();
    };
    const void *first = nullptr, *second = nullptr;
    for (int tries = 0; tries < 100 && (!first || first != second); tries++) {
        d.Synchronize();
        thread([&] { RoundRobin(2, 14); }, &first);
        given = d.executed.size();
        ASSERT_LT(given, asked.size()) << "some are held";
        thread([&] { Launch(Stream(0), 14); }, &second);
        given = d.executed.size() - given;
    }
    ASSERT_EQ(first, second) << "the place is used again";
    EXPECT_GE(d.executed.size(), asked.size() - 1);
    EXPECT_GT(given, 0u);
    d.Synchronize();
    Check();
}

// C1: what one thread gives to the legacy stream and to one that waits for it runs in one order.
TEST_F(Turns, OfTheLegacyStreamAreJoinedWithNonBlockingStreamsAlone)
{
    auto body = [&] {
        for (int i = 0; i < 16; i++)
            Launch(i % 2 ? Stream(0) : CU_STREAM_LEGACY, i);
    };
    Loop(100, body);
    EXPECT_EQ(0u, d.counters.tracks_joined.load());
    d.apart.insert(Stream(1));
    Loop(100, [&] {
        for (int i = 0; i < 16; i++)
            Launch(i % 2 ? Stream(1) : CU_STREAM_LEGACY, i);
    });
    EXPECT_EQ(1u, d.counters.tracks_joined.load());
    Loop(200,
         [&] { RoundRobin(2, 16); }); // stream 0 waits for the legacy stream, stream 1 does not
    EXPECT_EQ(1u, d.counters.tracks_joined.load());
    Check();
}

// DESIGN, order barriers: a program that asks for one order gets it.
TEST_F(Turns, AreLeftAloneWhereTheOrderOfStreamsIsKept)
{
    d.cap.keeps_order = true;
    Loop(200, [&] { RoundRobin(2, 16); });
    EXPECT_EQ(0u, d.counters.tracks_joined.load());
    for (size_t k = 0; k < d.executed.size(); k++)
        ASSERT_EQ(asked[k].op, d.executed[k].op);
}

// C5: where no sequence of both repeats, each has its own again; then eight times as many turns join them.
TEST_F(Turns, ThatDoNotPayAreTakenApart)
{
    std::mt19937 random(5);
    int k = 0;
    while (d.counters.tracks_split.load() == 0 && ++k < 400000) {
        Launch(Stream(random() % 2), (int)(random() % 50));
        if (k % 4096 == 0)
            d.executed.clear(), asked.clear(), d.Synchronize();
    }
    EXPECT_EQ(1u, d.counters.tracks_joined.load());
    EXPECT_EQ(1u, d.counters.tracks_split.load());
    d.Synchronize();
    d.executed.clear(), asked.clear(), looked = 0;
    Loop(100, [&] {
        for (int i = 0; i < 32; i++)
            Launch(Stream(i / 16), i);
    });
    EXPECT_GT(Share(), 0.5) << "each by itself";
    EXPECT_EQ(1u, d.counters.tracks_joined.load());
    Loop(20, [&] { RoundRobin(2, 16); });
    EXPECT_EQ(1u, d.counters.tracks_joined.load());
    Loop(20, [&] { RoundRobin(2, 16); });
    EXPECT_EQ(2u, d.counters.tracks_joined.load());
    Check();
}

// C1: the handles come back in another context, for streams of another kind.
TEST_F(Turns, AreForgottenWithTheirContext)
{
    d.apart.insert(Stream(1));
    auto body = [&] {
        for (int i = 0; i < 16; i++)
            Launch(i % 2 ? Stream(1) : CU_STREAM_LEGACY, i);
    };
    Loop(100, body);
    EXPECT_EQ(1u, d.counters.tracks_joined.load());
    ag_retire_contexts(&d.cap, reinterpret_cast<CUcontext>(0x1000), AG_ROW_cuCtxDestroy_v2);
    d.stream_ids = 0x10000;
    d.apart.clear();
    const size_t before = d.executed.size();
    Loop(60, body);
    for (size_t k = before; k < d.executed.size(); k++)
        ASSERT_EQ(asked[k].op, d.executed[k].op) << "one order of both";
    EXPECT_EQ(1u, d.counters.tracks_joined.load());
    Check();
}

// C1, C6: a stream goes, its handle comes back for another one.
TEST_F(Turns, OutliveAStream)
{
    Loop(100, [&] { RoundRobin(3, 24); });
    for (int i = 0; i < 7; i++)
        Launch(Stream(i % 3), i);
    ag_retire_stream(&d.cap, Stream(1), AG_ROW_cuStreamDestroy_v2);
    EXPECT_EQ(asked.size(), d.executed.size()) << "nothing of it is held any more";
    Share();
    Loop(100, [&] { RoundRobin(3, 24); });
    EXPECT_GT(Share(), 0.5);
    Check();
}

// C5: streams that live for a few ops each, beside one that stays: it goes on in graphs by itself.
TEST_F(Turns, WithStreamsThatDoNotLastAreSoonLeftAlone)
{
    uintptr_t next = 10;
    auto body = [&] {
        for (int k = 0; k < 16; k++) {
            for (int i = 0; i < 4; i++)
                Launch(Stream(0), i);
            for (int i = 0; i < 4; i++)
                Launch(Stream(next), i);
        }
        d.Synchronize();
        ag_retire_stream(&d.cap, Stream(next++), AG_ROW_cuStreamDestroy_v2);
    };
    for (int k = 0; k < 400; k++)
        body();
    EXPECT_GT(d.counters.tracks_joined.load(), 0u);
    EXPECT_LT(d.counters.tracks_joined.load(), 5u);
    Check();
}

// C5: where nothing is built any more, what is there is kept.
TEST_F(Turns, AreNeitherJoinedNorTakenApartWhereNothingIsBuilt)
{
    Loop(40, [&] {
        for (int i = 0; i < 32; i++)
            Launch(Stream(i / 16), i);
    });
    const CUfunction all_reduce = d.Function("ncclDevKernel_AllReduce", {8});
    Loop(200, [&] { RoundRobin(2, 16); });
    EXPECT_EQ(1u, d.counters.tracks_joined.load());
    EXPECT_EQ(CUDA_SUCCESS, d.Launch8(all_reduce, 0, 1, Stream(0)));
    asked.push_back({Stream(0), d.executed.back().op});
    const int destroyed = d.calls["cuGraphExecDestroy"];
    Loop(200, [&] {
        for (int i = 0; i < 16; i++)
            Launch(Stream(i % 2 ? 2 : 0), i);
    });
    EXPECT_EQ(1u, d.counters.tracks_joined.load());
    std::mt19937 random(5);
    for (int k = 0; k < 400000; k++)
        d.Launch8(f, 0, 1 + (int)(random() % 50), Stream(random() % 2));
    EXPECT_EQ(0u, d.counters.tracks_split.load());
    EXPECT_EQ(destroyed, d.calls["cuGraphExecDestroy"]) << "that may wait for the other half";
}
} // namespace
