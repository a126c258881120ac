-- Asks for positions at random; prints what came of it as one line of JSON.
-- Arguments: the number of partitions, the offsets of each, the token.

local partitions, span

function init(args)
  partitions, span = tonumber(args[1]), tonumber(args[2])
  wrk.headers["Authorization"] = "Bearer " .. args[3]
end

function request()
  local partition, offset = math.random(0, partitions - 1), math.random(0, span - 1)
  return wrk.format("GET", wrk.path .. "&partition=" .. partition .. "&offset=" .. offset)
end

function done(summary, latency)
  local errors = summary.errors
  local failed = errors.connect + errors.read + errors.write + errors.status + errors.timeout
  local line = '{"answers": %d, "failed": %d, "seconds": %f, "p50_ms": %f, "p99_ms": %f}\n'
  io.write(string.format(line, summary.requests, failed, summary.duration / 1e6,
    latency:percentile(50) / 1e3, latency:percentile(99) / 1e3))
end
