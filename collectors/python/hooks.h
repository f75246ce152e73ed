// The functions that Python's hooks call at each step, as built-in functions of Python: a call costs some
// tens of ns, where one through ctypes costs half a microsecond.
#pragma once

namespace trainprof::collectors {

// The program says itself where its steps begin: optimizers need not be counted.
void TellSteps();
// There are new facts: the next backward pass tells.
void TellAgain();

}  // namespace trainprof::collectors
