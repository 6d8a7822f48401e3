import Foundation
import PrismProtocol

@testable import PrismEngine

/// Delivers packets into a folder, a file each, named by the packet's id: another output than HTTP
/// (docs/extending.md, "Add an output").
struct FolderOutput: Output {
  let folder: String

  func deliver(_ packet: OutgoingPacket) async -> DeliveryOutcome {
    if Task.isCancelled { return DeliveryOutcome(.cancelled, mayHaveLeft: false) }
    let file = URL(filePath: folder).appending(path: "\(packet.id).packet")
    let wasThere = FileManager.default.fileExists(atPath: file.path)
    do { try Data(packet.body).write(to: file, options: .atomic) } catch {
      let verdict = DeliveryOutcome.Verdict.unavailable(status: nil, cause: "\(folder): not writable", retryAfter: nil)
      return DeliveryOutcome(verdict, mayHaveLeft: false)
    }
    return DeliveryOutcome(.accepted(wasDuplicate: wasThere), mayHaveLeft: true, bytesSent: packet.body.count)
  }
}
