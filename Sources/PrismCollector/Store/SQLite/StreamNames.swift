import PrismProtocol

/// Chooses the names of streams in a database that was set aside: one of two, if a table has another than its index.
enum StreamNames {
  /// Leaves out a stream of which both names may be right: its reports would be shown under the name of another device.
  /// - Parameter copies: the copies of each name that are names at all, by the number of the stream.
  static func chosen(of copies: [Int64: [StreamID]]) -> [Int64: StreamID] {
    var chosen = copies.compactMapValues { $0.count == 1 ? $0[0] : nil }
    let (taken, devices) = (Set(chosen.values), Set(chosen.values.map(\.device)))
    let namespaces = Set(chosen.values.map(\.namespace))
    for (id, names) in copies where names.count > 1 {
      // A name is there once.
      let free = names.filter { !taken.contains($0) }
      let hasOneDevice = Set(free.map(\.device)).count == 1
      let hasOneNamespace = Set(free.map(\.namespace)).count == 1
      // Other streams of the device, and of the namespace, have the right one.
      let known = free.filter { name in
        (hasOneDevice || devices.contains(name.device)) && (hasOneNamespace || namespaces.contains(name.namespace))
      }
      chosen[id] = free.count == 1 ? free[0] : known.count == 1 ? known[0] : nil
    }
    return chosen
  }
}
