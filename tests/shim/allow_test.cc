// Lists of names that graphs are used for: the first pattern that fits decides.
#include "shim/observe/allow.h"

#include <gtest/gtest.h>
#include <string>

namespace
{

bool allowed(const std::string &list, const char *name)
{
    return ag_allowed(list.c_str(), &name, 1);
}

TEST(Allow, AnEmptyListAllowsEverything)
{
    EXPECT_TRUE(allowed("", "train"));
    EXPECT_TRUE(allowed(" , ,", "train"));
    EXPECT_TRUE(allowed("", nullptr));
}

TEST(Allow, AListOfNamesAllowsThoseOnly)
{
    EXPECT_TRUE(allowed("train,infer", "infer"));
    EXPECT_FALSE(allowed("train,infer", "inference"));
    EXPECT_FALSE(allowed("train", nullptr)) << "an unknown name is none of them";
}

TEST(Allow, AListOfExclusionsAllowsAllOthers)
{
    EXPECT_FALSE(allowed("!train", "train"));
    EXPECT_TRUE(allowed("!train", "infer"));
    EXPECT_TRUE(allowed("!train", nullptr));
}

TEST(Allow, TheFirstPatternThatFitsDecides)
{
    EXPECT_TRUE(allowed("train_1,!train*", "train_1"));
    EXPECT_FALSE(allowed("!train*,train_1", "train_1"));
    EXPECT_FALSE(allowed("train_1,!train*", "infer")) << "it has a name without !";
}

TEST(Allow, PatternsAreThoseOfAShell)
{
    EXPECT_TRUE(allowed("*gemm*", "_Z4gemmPf"));
    EXPECT_TRUE(allowed("k?[0-9]", "ka7"));
    EXPECT_FALSE(allowed("k?[0-9]", "kab"));
}

TEST(Allow, SpacesAroundAPatternAreNotPartOfIt)
{
    EXPECT_TRUE(allowed(" a , b ", "b"));
    EXPECT_FALSE(allowed("a, !b ", "b"));
}

TEST(Allow, OneOfSeveralNamesIsEnough)
{
    const char *names[] = {"python3.12", nullptr, "train.py"};
    EXPECT_TRUE(ag_allowed("train.py", names, 3));
    EXPECT_FALSE(ag_allowed("!train.py", names, 3));
    EXPECT_TRUE(ag_allowed("python*", names, 3));
}

TEST(Allow, APatternLongerThanAnyNameFitsNone)
{
    const std::string name(400, 'a');
    EXPECT_FALSE(allowed(name, name.c_str()));
    EXPECT_TRUE(allowed(name + ",b", "b"));
}

TEST(Allow, ThisProgramHasTheNameOfItsFile)
{
    EXPECT_TRUE(ag_program_allowed("allow_test*"));
    EXPECT_FALSE(ag_program_allowed("!allow_test*"));
    EXPECT_FALSE(ag_program_allowed("some_other_test"));
    EXPECT_TRUE(ag_program_allowed(""));
}

} // namespace
