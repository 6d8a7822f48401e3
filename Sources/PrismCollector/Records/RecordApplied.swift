import PrismBase
import PrismPacket
import PrismProtocol

/// The result of a packet of operations on records.
struct RecordApplied: Sendable, Equatable {
  var receipt = RecordReceipt()
  /// The packet came before, and changed nothing now.
  var wasDuplicate = false
  /// The packet before it never came.
  var isChainBroken = false
  /// Operations that lost against a newer change of the server's.
  var lost = 0
  /// The number of the server's newest change that the device has to learn; 0: there is no such change.
  var version: Int64 = 0

  /// Of the answer: a device that knows an older change asks at once.
  var headers: [(name: String, value: String)] { [(DownHeaders.versionName, String(version))] }

  /// Counts and logs operations that lost.
  func note(in collector: Collector, from context: PacketContext) {
    guard lost > 0 else { return }
    collector.counts.countLostOperations(lost)
    collector.log.info(
      "changes of a device lost against newer ones of the server",
      ["device": context.deviceID, "namespace": context.namespace.text, "count": String(lost)])
  }
}

extension RecordOperation {
  /// The id in the collector's tables: the server's for a record that the server made, else the device's.
  var key: String {
    guard let serverID, !serverID.isNumber else { return id.text }
    return serverID.text
  }

  /// Why a device may not make this change of tags; nil: it may. It writes those of its own file only.
  var tagFault: String? {
    guard table == .tags else { return nil }
    guard key == DeviceTags.Source.device.rawValue else {
      return "a device writes the record `\(DeviceTags.Source.device)` of \(table) only"
    }
    return kind == .delete || DeviceTags(fields) != nil ? nil : "tags must be \(DeviceTags.rule)"
  }
}

extension RecordID {
  /// Of digits, as the collector gives them to records of devices.
  var isNumber: Bool { text.utf8.allSatisfy(\.isASCIIDigit) }
}
