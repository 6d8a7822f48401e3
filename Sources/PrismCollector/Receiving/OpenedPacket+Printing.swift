import PrismProtocol

extension OpenedPacket {
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
