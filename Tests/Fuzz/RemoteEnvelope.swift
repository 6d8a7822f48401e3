import FuzzSupport
import PrismConfig
import PrismPacket

/// Answers of a server of remote configuration. The first byte says whether the rest is the answer itself or the document
/// in a sound envelope.
@main
enum RemoteEnvelopeHarness {
  static func main() { Fuzz.run { run($0) } }

  private static let publicKey = [UInt8](repeating: 9, count: 32)

  private static func run(_ input: ArraySlice<UInt8>) {
    var rest = input
    let isDocument = rest.takeByte() & 1 == 1
    if isDocument { return read(Array(rest)) }
    let answer = Array(rest)
    precondition((try? RemoteEnvelope.open(answer, publicKey: publicKey)) == nil, "a stranger's signature is taken")
    if let document = try? RemoteEnvelope.open(answer, publicKey: nil) { read(document) }
  }

  private static func read(_ document: [UInt8]) {
    guard let document = try? RemoteDocument(parsing: document) else { return }
    precondition(document.updateTime >= 0 && document.namespaces.count <= RemoteDocument.namespacesMax)
  }
}
