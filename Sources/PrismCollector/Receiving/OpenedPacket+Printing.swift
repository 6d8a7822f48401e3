import PrismProtocol

extension OpenedPacket {
  /// Counts, notes and prints what was stored.
  func note(in collector: Collector) {
    if delivery.context.kind == .meta { collector.counts.countCrashes(crashes) }
    if records == nil { collector.devices.facts.note(self) }
    guard let print = collector.options.print else { return }
    for index in rows.indices { print(printedLine(index)) }
  }

  /// A report as `--print` writes it.
  func printedLine(_ index: Int) -> String {
    let context = delivery.context
    let head: JSONValue = [
      "device": .string(context.deviceID), "namespace": .string(context.namespace.text),
      "kind": .string(context.kind.name), "packetId": .string(context.packetID.description),
      "payloadBytes": payload(index).map { .int($0.count) } ?? .null,
    ]
    let text = String(decoding: reports.meta(rows[index]), as: UTF8.self).printableJSON
    return head.text.dropLast() + ",\"meta\":" + text + "}"
  }
}
