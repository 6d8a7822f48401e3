import PrismBase

/// Counts devices that became silent, for the metrics.
struct DeviceWatch: Sendable {
  /// Between two looks.
  static let interval: Duration = .seconds(300)
  private static let day: Int64 = 86_400_000
  private static let streamsMax = 200_000

  let collector: Collector

  /// Devices that sent within the last 7 days, but not in the last 24 hours.
  static func silent(_ devices: [DeviceSummary], now: Int64) -> Int {
    devices.count { (now - 7 * day..<now - day).contains($0.seenTime) }
  }

  /// Looks once. A store that can't be read leaves the figure as it was.
  func look() async {
    guard let streams = try? await collector.store.queries?.streams(of: nil, limit: Self.streamsMax) else { return }
    let now = collector.time.unixMilliseconds
    collector.counts.set(silentDevices: Self.silent(DeviceSummary.all(of: streams), now: now))
  }

  func run() async {
    while !Task.isCancelled {
      await look()
      do { try await collector.time.sleep(for: Self.interval) } catch { return }  // the collector stops
    }
  }
}
