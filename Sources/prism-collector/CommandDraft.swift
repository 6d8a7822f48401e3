import Glibc
import PrismBase
import PrismCollector
import PrismPacket
import PrismProtocol

/// A command before it is of a device: with one id for all of them, and signed for each.
struct CommandDraft {
  private static let keyBytesMax = 65_536

  let id: RecordID
  private let (name, args): (CommandName, [String: CommandValue])
  /// The words of the command line, for faults.
  private let words: String
  private let (now, expires): (Int64, Int64)
  private let key: SigningKey?

  /// - Parameter line: with `--expires` and `--sign`.
  init(_ line: Invocation, _ name: CommandName, _ args: [String: CommandValue]) throws(Failure) {
    now = SystemTime().unixMilliseconds
    var random = SystemRandomNumberGenerator()
    id = RecordID(PacketID(unixMilliseconds: now, using: &random).description)!
    (self.name, self.args) = (name, try name == .erase ? Self.withoutValue(args) : args)
    words = line.command.name
    expires = now + (try Self.span(line["--expires"] ?? "1h", of: "--expires")) * 1000
    key = try line["--sign"].map { (path) throws(Failure) in try Self.signingKey(path) }
  }

  var isSigned: Bool { key != nil }

  /// - Parameter own: the device's own id; nil: that of all.
  /// - Throws: 64 for a command that the device would not read: a fault is said before anything is sent.
  func request(_ namespace: NamespaceName, _ device: String, id own: RecordID? = nil) throws(Failure) -> CommandRequest
  {
    let id = own ?? id
    let draft = CommandRequest(
      namespace: namespace, deviceID: device, id: id, name: name, args: args, expires: expires)
    let request: CommandRequest
    do throws(CommandFault) {
      request = try CommandRequest(fields: draft.fields, namespace: namespace, deviceID: device, id: id)
      try request.check(now: now)
    } catch { throw .usage("\(words): \(error.message)") }
    guard let key else { return request }
    do throws(PacketError) { return try request.signed(by: key) } catch {
      throw .unavailable("--sign: the command can't be signed: \(error.rawValue)")
    }
  }

  /// The value that is erased stays here: the command has its digest.
  private static func withoutValue(_ args: [String: CommandValue]) throws(Failure) -> [String: CommandValue] {
    guard case .text(let text)? = args["where"] else { return args }
    do {
      return args.merging(["where": .text(try ErasedValue(try MetaCondition(erasing: text)).text)]) { $1 }
    } catch { throw .usage("erase: where: \((error as? MetaCondition.Fault)?.reason ?? "\(error)")") }
  }

  private static func signingKey(_ path: String) throws(Failure) -> SigningKey {
    let read: (bytes: [UInt8], mode: UInt32)
    do throws(FileError) { read = try SmallFile.readWithMode(path, bytesMax: keyBytesMax) } catch {
      throw Failure(Failure.noInput, "--sign: \(error.description)")
    }
    guard read.mode & 0o004 == 0 else {
      throw .usage("--sign: \(path) is readable by others; chmod 600 it, and make a new key if others were here")
    }
    guard let key = SigningKey(pem: read.bytes) else {
      throw .usage("--sign: \(path) holds no Ed25519 key in PEM; openssl genpkey -algorithm ed25519 makes one")
    }
    return key
  }

  static func span(_ text: String, of option: String) throws(Failure) -> Int64 {
    do throws(WrittenTime.Fault) {
      return try WrittenTime.seconds(text, daysMax: Int64(CommandRequest.lifetimeDaysMax))
    } catch { throw .usage("\(option): \(error.message)") }
  }
}
