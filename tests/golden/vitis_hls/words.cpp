static void B_loader(const float_x2 *B, hls::stream<float_6_t> &B_loader_to_C) {
    for (int i = 0; i < 2; i++)
        for (int j = 0; j < 2; j++)
            for (int k = 0; k < 16; k++) {
                #pragma HLS PIPELINE II=3
                float_6_t to_C;
                #pragma HLS ARRAY_PARTITION variable=to_C.s complete dim=0
                float_x2 B_words[3];
                #pragma HLS ARRAY_PARTITION variable=B_words complete dim=0
                #pragma HLS ARRAY_PARTITION variable=B_words.s complete dim=0
                for (int word = 0; word < 3; word++) {
                    #pragma HLS UNROLL
                    B_words[word] = B[k * 6 + 3 * j + word];
                }
                for (int jj = 0; jj < 6; jj++) {
                    #pragma HLS UNROLL
                    to_C.s[jj] = B_words[jj / 2].s[jj % 2];
                }
                B_loader_to_C.write(to_C);
            }
}

