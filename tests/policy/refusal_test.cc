/* Names and sentences follow refusal.def. */
#include "policy/refusal.h"

#include "gtest/gtest.h"

#include <cctype>
#include <set>
#include <string>

namespace
{

TEST(Refusal, NoneIsZeroAndTheRestFollowsTheTable)
{
    EXPECT_EQ(AG_REFUSAL_NONE, 0);
    EXPECT_STREQ(ag_refusal_name(AG_REFUSAL_NONE), "NONE");
    EXPECT_STREQ(ag_refusal_name(AG_REFUSAL_DIVERGED), "DIVERGED");
    EXPECT_STREQ(ag_refusal_sentence(AG_REFUSAL_DIVERGED),
                 "the program left the predicted sequence");
    EXPECT_EQ(AG_REFUSAL_OFF, AG_REFUSALS - 1);
}

TEST(Refusal, EachHasANameAndASentenceOfItsOwn)
{
    std::set<std::string> names, sentences;
    for (int i = 0; i < AG_REFUSALS; i++) {
        std::string sentence = ag_refusal_sentence(ag_refusal(i));
        EXPECT_TRUE(names.insert(ag_refusal_name(ag_refusal(i))).second) << i;
        EXPECT_TRUE(sentences.insert(sentence).second) << sentence;
        EXPECT_GT(sentence.size(), 10u);
        EXPECT_FALSE(isupper(sentence[0]) && islower(sentence[1])) << "lower case: " << sentence;
        EXPECT_NE(sentence.back(), '.');
    }
}

TEST(Refusal, OutsideTheTableIsUnknown)
{
    EXPECT_STREQ(ag_refusal_name(AG_REFUSALS), "UNKNOWN");
    EXPECT_STREQ(ag_refusal_sentence(ag_refusal(-1)), "unknown reason");
}

} // namespace
