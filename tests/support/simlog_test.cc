// The reader of the execution log: what cannot be read is told, never taken for something else.
#include "tests/support/process.h"
#include "tests/support/simlog.h"

#include <fstream>
#include <gtest/gtest.h>

namespace
{

const std::string kOp = "E 1 1 2 launch vary_mix 1,1,1 64,1,1 0 00000000907e0000 fn=1 sub=1 t=5";

ag_test::SimLog read(const std::string &text)
{
    const std::string dir = ag_test::make_dir("simlog"), path = dir + "/log";
    std::ofstream(path) << text;
    ag_test::SimLog log = ag_test::read_simlog(path);
    ag_test::remove_dir(dir);
    return log;
}

TEST(SimLog, WholeLinesAreOps)
{
    const ag_test::SimLog log = read(kOp + "\n" + kOp + "\n");
    EXPECT_EQ(2u, log.executed.size());
    EXPECT_EQ("", log.bad_line);
    EXPECT_EQ("", log.cut_line);
}

TEST(SimLog, ALineThatTheEndOfTheProcessCutIsNoOpAndNotABadOne)
{
    for (size_t length = 1; length <= kOp.size(); length++) {
        const ag_test::SimLog log = read(kOp + "\n" + kOp.substr(0, length));
        EXPECT_EQ(1u, log.executed.size()) << length;
        EXPECT_EQ("", log.bad_line);
        EXPECT_EQ(kOp.substr(0, length), log.cut_line);
    }
}

TEST(SimLog, AShortLineElsewhereIsABadOne)
{
    EXPECT_EQ(kOp.substr(0, 30), read(kOp.substr(0, 30) + "\n" + kOp + "\n").bad_line);
}

} // namespace
