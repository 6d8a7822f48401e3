import PrismBase
public import PrismPacket
public import PrismProtocol
import Synchronization

/// Answers questions for tables of records as a test says, and remembers them.
public final class ScriptedDownloads: DownloadSource {
  /// The result of a question.
  public enum Answer: Sendable {
    /// The lines of the answer. - Parameter encoding: how they are compressed.
    case lines([DownLine], encoding: PacketEncoding = .gzip)
    /// An answer to another question: the same lines under another packet's id.
    case foreign([DownLine])
    case status(Int, headers: [String: String] = [:], body: String = "")
    case failure(PostAnswer.Failure)
  }

  public typealias Script = @Sendable (DownQuestion) async -> Answer

  private let script: Mutex<Script>
  private let asked = Mutex<[DownQuestion]>([])
  private let limits = Mutex<[Int]>([])
  /// The collector's clock.
  private let now: @Sendable () -> Int64

  public init(now: @escaping @Sendable () -> Int64, _ script: @escaping Script) {
    self.now = now
    self.script = Mutex(script)
  }

  public func set(_ script: @escaping Script) { self.script.withLock { $0 = script } }
  public var questions: [DownQuestion] { asked.withLock { $0 } }
  /// `answerBytesMax` of each request.
  public var bytesMax: [Int] { limits.withLock { $0 } }

  public func download(_ request: TransferRequest) async -> DownloadAnswer {
    guard let question = Self.question(request) else { return Self.answer(400) }
    asked.withLock { $0.append(question) }
    limits.withLock { $0.append(request.answerBytesMax) }
    let script = script.withLock { $0 }
    switch await script(question) {
    case .lines(let lines, let encoding): return sealed(lines, encoding, question, question)
    case .foreign(let lines):
      var other = question
      var random = SeededRandom(seed: 5)
      other.packetID = PacketID(unixMilliseconds: 1, using: &random)
      return sealed(lines, .gzip, other, question)
    case .status(let status, let headers, let body): return Self.answer(status, headers, body)
    case .failure(let failure):
      return DownloadAnswer(outcome: .failure(failure, detail: "scripted"), body: nil, bytesOnWire: 0)
    }
  }

  private static func key(_ question: DownQuestion) -> Secret {
    Secret(Array(DeliveryRig.key.bytes.prefix(question.cipher.keyBytes)))
  }

  private static func question(_ request: TransferRequest) -> DownQuestion? {
    let parts = request.url.split(separator: "?", maxSplits: 1)
    guard parts.count == 2, parts[0].hasSuffix(DownQuestion.path) else { return nil }
    let query = parts[1].split(separator: "&").map { $0.split(separator: "=").map(String.init) }
    let question = try? DownQuestion(
      query: { name in query.first { $0.first == name }?.last },
      { name in request.headers.filter { $0.name.lowercased() == name }.map(\.value) })
    guard let question, (try? question.isProven(by: request.header("Prism-Mac"), key: key(question))) == true else {
      return nil
    }
    return question
  }

  private static func answer(_ status: Int, _ headers: [String: String] = [:], _ body: String = "") -> DownloadAnswer {
    DownloadAnswer(
      outcome: .response(status: status, headers: headers, body: Array(body.utf8)), body: nil, bytesOnWire: 300)
  }

  private func sealed(
    _ lines: [DownLine], _ encoding: PacketEncoding, _ question: DownQuestion, _ asked: DownQuestion
  ) -> DownloadAnswer {
    let sentTime = now()  // once: it is in the context, too
    do {
      let packer = try DownPacker(encoding: encoding)
      var packed: [UInt8] = []
      for line in lines { packed += try packer.add(line.bytes) }
      packed += try packer.finish()
      let headers = DownHeaders(to: question, lineCount: lines.count, sentTime: sentTime, encoding: encoding)
      let body = try DownBody(headers, packed: packed, key: Self.key(question))
      var (bytes, piece): ([UInt8], [UInt8]) = ([], .init(repeating: 0, count: 65_536))
      while true {
        let count = try piece.withUnsafeMutableBytes { try body.read(into: $0) }
        if count == 0 { break }
        bytes += piece[..<count]
      }
      var fields: [String: String] = [:]
      let answering = DownHeaders(to: asked, lineCount: lines.count, sentTime: sentTime, encoding: encoding)
      for (name, value) in answering.fields {
        fields[name.lowercased()] = value
      }
      fields["prism-mac"] = body.mac
      return DownloadAnswer(
        outcome: .response(status: 200, headers: fields, body: []), body: bytes, bytesOnWire: bytes.count + 600)
    } catch { preconditionFailure("the script's lines can't be packed: \(error)") }
  }
}

extension DeliveryRig {
  /// Answers questions with the rig's clock.
  public func downloads(_ script: @escaping ScriptedDownloads.Script) -> ScriptedDownloads {
    ScriptedDownloads(now: { [time] in time.unixMilliseconds }, script)
  }
}
