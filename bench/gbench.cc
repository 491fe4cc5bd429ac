/*
 * Google Benchmark (1.5 and later) behind gbench.h. One benchmark is registered for each sample, named by its index; a
 * reporter that prints nothing hands the times back.
 *
 * Every flag can come from the environment (BENCHMARK_OUT, BENCHMARK_LIST_TESTS, ...), so those that would change a run
 * are set here.
 */
#include "gbench.h"

#include <benchmark/benchmark.h>

#include <exception>
#include <ostream>
#include <string>
#include <vector>

namespace
{

/* Stores the time of each run in the sample whose index is its name; prints nothing. */
class Collector : public benchmark::BenchmarkReporter
{
  public:
    Collector(gbench_sample *samples, size_t n) : samples_(samples), n_(n), nowhere_(nullptr)
    {
        SetOutputStream(&nowhere_);
        SetErrorStream(&nowhere_);
    }

    bool ReportContext(const Context &) override { return true; }

    void ReportRuns(const std::vector<Run> &runs) override
    {
        for (const Run &run : runs) {
            /* Runs that failed or were skipped have no iterations. The members that say so changed between releases. */
            if (run.run_type != Run::RT_Iteration || run.iterations <= 0)
                continue;
            size_t index = std::stoul(run.run_name.function_name);
            if (index >= n_)
                continue;
            samples_[index].iterations = static_cast<int64_t>(run.iterations);
            samples_[index].seconds =
                run.real_accumulated_time / static_cast<double>(run.iterations);
            reported_++;
        }
    }

    size_t reported() const { return reported_; }

  private:
    gbench_sample *samples_;
    size_t n_;
    size_t reported_ = 0;
    std::ostream nowhere_;
};

/* Sets the flags of Google Benchmark, at the first call. */
void initialise()
{
    static bool done = false;
    if (done)
        return;
    std::string flags[] = { "posenc",
                            "--benchmark_list_tests=false",
                            "--benchmark_filter=.",
                            "--benchmark_out=",
                            "--benchmark_repetitions=1",
                            "--benchmark_enable_random_interleaving=false" };
    std::vector<char *> argv;
    for (std::string &flag : flags)
        argv.push_back(&flag[0]);
    int argc = static_cast<int>(argv.size());
    argv.push_back(nullptr);
    benchmark::Initialize(&argc, argv.data());
    done = true;
}

void register_sample(gbench_sample *sample, size_t index, double min_seconds)
{
    auto body = [sample](benchmark::State &state) {
        if (sample->on_begin)
            sample->on_begin(sample->user);
        for (int i = 0; i < sample->warm; i++)
            sample->call(sample->user);
        benchmark::ClobberMemory();
        for (auto _ : state) {
            (void)_;
            sample->call(sample->user);
            benchmark::ClobberMemory();
        }
    };
    /* Its type moved between releases. */
    auto *registered = benchmark::RegisterBenchmark(std::to_string(index).c_str(), body);
    registered->UseRealTime()->Repetitions(1);
    if (sample->iterations > 0)
        registered->Iterations(sample->iterations);
    else
        registered->MinTime(min_seconds);
}

} // namespace

extern "C" int gbench_time(struct gbench_sample *samples, size_t n, double min_seconds)
{
    if (n == 0)
        return 0;
    try {
        initialise();
        benchmark::ClearRegisteredBenchmarks();
        for (size_t i = 0; i < n; i++)
            register_sample(&samples[i], i, min_seconds);
        Collector collector(samples, n);
        benchmark::RunSpecifiedBenchmarks(&collector);
        benchmark::ClearRegisteredBenchmarks();
        return collector.reported() == n ? 0 : -1;
    } catch (const std::exception &) {
        return -1;
    }
}
