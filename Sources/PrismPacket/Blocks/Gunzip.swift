import CZlib

/// Unpacks one gzip member (RFC 1952) that fills `bytes` exactly.
///
/// - Parameter takesSeveral: the bytes may be several members, one after the other.
/// - Throws: `tooLarge` as soon as more than `bytesMax` come out (nothing beyond is unpacked), `unpackFailed` for
///   anything that is not one whole member: cut short, damaged, or followed by something.
public func gunzip(
  _ bytes: ArraySlice<UInt8>, bytesMax: Int, takesSeveral: Bool = false
) throws(PacketError) -> [UInt8] {
  var stream = z_stream()
  guard prism_inflate_gzip_init(&stream) == Z_OK else { throw .internal }
  defer { inflateEnd(&stream) }
  var input = Array(bytes)
  var result: [UInt8] = []
  // The last member says its length (RFC 1952, 2.3.1). An array that grows step by step is held twice.
  let said = bytes.suffix(4).reversed().reduce(0) { $0 << 8 | Int($1) }
  result.reserveCapacity(min(said, bytesMax))
  var chunk = [UInt8](repeating: 0, count: min(max(bytes.count * 8, 1024), 256 * 1024))
  var code = Z_OK
  input.withUnsafeMutableBufferPointer { input in
    stream.next_in = input.baseAddress
    stream.avail_in = UInt32(input.count)
    repeat {
      let produced = chunk.withUnsafeMutableBufferPointer { chunk in
        stream.next_out = chunk.baseAddress
        stream.avail_out = UInt32(chunk.count)
        code = inflate(&stream, Z_NO_FLUSH)
        return chunk.count - Int(stream.avail_out)
      }
      result += chunk[..<produced]
      if code == Z_STREAM_END, takesSeveral, stream.avail_in > 0 { code = inflateReset(&stream) }
    } while code == Z_OK && result.count <= bytesMax
  }
  if result.count > bytesMax { throw .tooLarge }
  guard code == Z_STREAM_END, stream.avail_in == 0 else { throw .unpackFailed }
  return result
}
