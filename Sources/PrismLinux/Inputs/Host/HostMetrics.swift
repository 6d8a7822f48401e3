import PrismProtocol

/// The meta of a `hostMetrics` report (docs/host.md). Pure.
enum HostMetrics {
  /// Disks, file systems, interfaces and sensors, of each kind: a meta has at most 10 KiB.
  static let entriesMax = 12

  /// - Parameter before: at the start of the interval.
  static func meta(from before: HostCounters, to after: HostCounters, _ gauges: HostGauges) -> JSONValue {
    let interval = max(.milliseconds(1), after.uptime - before.uptime)
    var members: [JSONValue.Member] = [
      .init("uptimeSecond", .int(after.uptime.components.seconds)),
      .init("intervalMs", .int(Int64(interval / .milliseconds(1)))), .init("processors", .int(gauges.processors)),
      .init("load", .array(gauges.load.map { .double($0) })),
    ]
    members += [
      .init("processor", processor(before.processorTicks, after.processorTicks)), .init("memory", memory(gauges)),
    ]
    let pressure = after.pressure.sorted { $0.key < $1.key }.map { name, total in
      JSONValue.Member(name, share(since(before.pressure[name], total), of: interval / .microseconds(1)))
    }
    members.append(.init("pressure", .object(pressure)))
    members.append(.init("disks", disks(before.disks, after.disks, interval)))
    members.append(.init("fileSystems", fileSystems(gauges)))
    members.append(.init("network", network(before.interfaces, after.interfaces)))
    members.append(.init("temperatures", temperatures(gauges)))
    return .object(members.filter { $0.value != .object([]) && $0.value != .array([]) })
  }

  /// A counter that went back began again at 0.
  private static func since(_ before: UInt64?, _ after: UInt64) -> UInt64 {
    guard let before, after >= before else { return after }
    return after - before
  }

  /// 0 to 1, with four digits.
  private static func share(_ part: UInt64, of whole: Double) -> JSONValue {
    .double(min(1, (Double(part) / max(whole, 1) * 10_000).rounded() / 10_000))
  }

  private static func processor(_ before: [UInt64], _ after: [UInt64]) -> JSONValue {
    guard after.count == 8 else { return .object([]) }
    let ticks = zip(before.count == 8 ? before : Array(repeating: 0, count: 8), after).map { since($0, $1) }
    let whole = Double(ticks.reduce(0, &+))
    let busy = ticks.reduce(0, &+) - ticks[3] - ticks[4]
    return [
      "busy": share(busy, of: whole), "system": share(ticks[2] + ticks[5] + ticks[6], of: whole),
      "iowait": share(ticks[4], of: whole), "steal": share(ticks[7], of: whole),
    ]
  }

  private static func memory(_ gauges: HostGauges) -> JSONValue {
    let names = [
      ("totalKByte", "MemTotal"), ("availableKByte", "MemAvailable"), ("swapKByte", "SwapTotal"),
      ("swapFreeKByte", "SwapFree"),
    ]
    return .object(names.compactMap { name, key in gauges.memory[key].map { .init(name, .int($0)) } })
  }

  private static func disks(
    _ before: [String: HostCounters.Disk], _ after: [String: HostCounters.Disk], _ interval: Duration
  ) -> JSONValue {
    list(after) { name, disk in
      let old = before[name]
      return [
        "name": .string(name), "readByte": .int(since(old?.readBytes, disk.readBytes)),
        "writtenByte": .int(since(old?.writtenBytes, disk.writtenBytes)),
        "busy": share(since(old?.busyMilliseconds, disk.busyMilliseconds), of: interval / .milliseconds(1)),
      ]
    }
  }

  private static func network(
    _ before: [String: HostCounters.Interface], _ after: [String: HostCounters.Interface]
  ) -> JSONValue {
    list(after) { name, interface in
      let old = before[name]
      return [
        "name": .string(name), "receivedByte": .int(since(old?.receivedBytes, interface.receivedBytes)),
        "sentByte": .int(since(old?.sentBytes, interface.sentBytes)),
        "errors": .int(since(old?.errors, interface.errors)), "dropped": .int(since(old?.dropped, interface.dropped)),
      ]
    }
  }

  private static func list<Value>(_ entries: [String: Value], _ entry: (String, Value) -> JSONValue) -> JSONValue {
    .array(entries.sorted { $0.key < $1.key }.prefix(entriesMax).map { entry($0.key, $0.value) })
  }

  private static func fileSystems(_ gauges: HostGauges) -> JSONValue {
    .array(
      gauges.fileSystems.prefix(entriesMax).map {
        [
          "path": .string(String($0.path.prefix(128))), "totalByte": .int($0.bytes), "freeByte": .int($0.freeBytes),
          "freeInodes": .int($0.freeInodes),
        ]
      })
  }

  private static func temperatures(_ gauges: HostGauges) -> JSONValue {
    .array(
      gauges.temperatures.prefix(entriesMax).map {
        ["name": .string(String($0.name.prefix(64))), "celsius": .double($0.celsius)]
      })
  }
}
